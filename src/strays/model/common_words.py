"""Words too common to be what makes a text odd: function words, and words that many normal texts have.

The kept normal texts tell which words are common, in any language. In short texts many function words are rarer than
that ("or" is in one title of a hundred), so that closed-class words of some languages are listed as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from strays.model.segments import words

# A word that makes up at least this share of the words of normal texts is common, if a few texts have it.
COMMON_SHARE, FEWEST_TEXTS = 1 / 400, 5
# Articles, pronouns, prepositions, conjunctions, auxiliaries and the like; of "don't" and "l'eau" each piece is a word.
_CLOSED_CLASS = """
a an the this that these those some any no not nor neither each every all both either such own same other another
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves one who whom whose which what there here
of in on at by for from to with without within into onto out off over under up down about above below between among
against through during before after since until till as per via than upon toward towards around across along near
and or but if then else because so while when where whether although though unless yet how why
be am is are was were been being have has had having do does did doing done will would shall should can could may might
must ought let s t d ll re ve m don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain cannot
very too also just only even still again once ever never more most much many few less least
der die das den dem des ein eine einen einem einer eines kein keine keinen und oder aber doch denn wenn als wie wo was
wer wann warum ob dass da weil ich du er sie es wir ihr mich mir dich dir ihn ihm uns euch ihnen sich mein meine meinen
meiner dein deine sein seine seinen seiner ihre ihren ihrer unser unsere euer im am zum zur vom beim ins ans an auf aus
bei bis durch gegen hinter mit nach neben ohne seit unter vor von zu zwischen ist sind war waren bin bist hat habe haben
hatte wird werden wurde wurden kann können muss soll nicht nur noch schon auch sehr so dann hier dort man
le la les l un une des du de d au aux et ou mais donc car ni que qu qui quoi dont si ce cet cette ces ça c je j tu il
elle nous vous ils elles on se lui leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos y en dans sur sous
par pour sans avec chez vers entre est sont suis es était étaient été être a ai as ont avait avoir ne n pas plus très
el los las lo una unos unas del al y e o u pero sino porque como cuando donde quien cual yo tú él ella nosotros ellos
ellas usted ustedes te le les nos mi mis tu tus su sus este esta estos estas ese esa eso con sin por para desde hasta
entre sobre es son era fue ser está están ha han hay no sí muy más ya también
il lo gli i una uno di del dello della dei delle da dal dalla nel nella sul sulla col ed ma perché che chi cui io lei
noi voi loro mi ti ci vi ne mio mia suo sua per tra fra con non è sono era ho hai hanno più anche
os uma uns umas do dos das no na nos nas ao à pelo pela em com sem mas não você ele ela eles elas meu minha seu sua é
são foi ser está tem mais muito também já
het een en of maar want dat die dit deze ik jij je hij zij ze wij we jullie hun haar mijn jouw zijn ons onze van voor
met op aan uit bij naar om door over tot te niet geen ook nog wel er is was waren ben heeft heb had wordt worden kan
"""
FUNCTION_WORDS = frozenset(_CLOSED_CLASS.split())


def common_words(normal_texts: Sequence[str], *, function_words: frozenset[str] = FUNCTION_WORDS) -> frozenset[str]:
    """The function words, and the words that are common in these texts.

    >>> found = common_words([f"my bike has {n} flat tyres" for n in range(40)])
    >>> sorted({"my", "bike", "or", "oder", "lottery"} & found)
    ['bike', 'my', 'oder', 'or']
    """
    n_times: Counter[str] = Counter()
    n_texts: Counter[str] = Counter()
    for text in normal_texts:
        found = words(text)
        n_times.update(found)
        n_texts.update(set(found))
    least = COMMON_SHARE * n_times.total()
    return function_words | {word for word, n in n_times.items() if n >= least and n_texts[word] >= FEWEST_TEXTS}


def all_common(piece: str, common: frozenset[str]) -> bool:
    """Whether all words of a piece of text are common.

    >>> all_common("isn't it?", FUNCTION_WORDS), all_common("isn't odd?", FUNCTION_WORDS)
    (True, False)
    """
    return common.issuperset(words(piece))
