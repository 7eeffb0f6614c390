"""Which language texts seem to be in, and whether an encoder was made for it.

A script of its own tells a language, or a few; see writing_systems. In Latin letters a language shows by its function
words ("the", "of"; "und", "nicht"), which make up a third and more of running text. A text is in the language of which
it has most, and at least two; an encoder was made for a language if its vocabulary has these words whole. Both are
cautious: titles and names without function words say nothing, and a pile of which some texts are in another language
draws no warning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from strays.encoders.writing_systems import foreign_script, known_scripts

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
CHINESE = "BAAI/bge-small-zh-v1.5"
# Fewer texts than this say too little.
FEWEST_TEXTS = 20
# How many texts are looked at, evenly spaced, and how many characters of each.
LOOKED_AT, CHARACTERS = 200, 300
# A vocabulary knows a language of whose words it has this share. Those made for English have up to two thirds, as
# names and titles of other languages are full of them.
ENOUGH_WORDS = 0.9

ENGLISH = "English"
# Frequent words that are not also frequent in English, without accents, since many people type none.
FREQUENT_WORDS = {
    ENGLISH: "the of and to in is that for it with as was on be this are by not have from at but an they you his her "
    "she he we my your all so if what or which there me do can will would has been were out up about when who their "
    "its just how more some than then them these had could should into also any only our where why",
    "German": "der das und nicht ist ein eine einen einer ich sie mit auf zu von sich auch im dem wir wie aber wird "
    "bei nach wurde haben sind noch nur kann mich mir fur uber oder wenn dass sehr zum zur habe diese vom",
    "French": "le la les et des est une dans pour que qui pas sur avec vous nous il elle mais ce cette sont du aux je "
    "ont etre par tres leur ses nos votre comme ou sans tout meme fait ete chez aussi",
    "Spanish": "el la los las que una por con para es del como pero su muy esta este son fue hay ser han sobre cuando "
    "ya porque tiene desde todos donde nos entre le lo yo mi estoy ha sido eso",
    "Italian": "il la le di che non per una sono con del della dei delle si ho mi alla gli anche ma come piu nel nella "
    "questo questa molto hanno essere stato ha sul sulla tutto lo dalla perche quando ci",
    "Portuguese": "que nao uma para com os do da dos das em por mais se na mas como muito foi sao ele ela pelo pela "
    "sem ser tem voce isso meu minha ao ja quando esta seu sua nos nas eu",
    "Dutch": "de het een van niet dat ik op te voor met zijn maar ook er bij naar wordt worden hebben heb deze aan je "
    "mijn dit wij ons geen nog wel uit heeft moet kunnen door als om",
    "Swedish": "och att det som pa inte jag av till den ett om men sa hade vi kan ska fran eller nar sig mycket "
    "detta denna alla efter bara har ar var",
    "Danish or Norwegian": "og at det som pa ikke jeg av af til den et om men sa vi kan skal fra eller nar seg sig "
    "meget dette denne alle etter efter bare har er var deg dig meg mig",
    "Polish": "nie sie jest ze jak ale czy przez dla sa byl tylko juz moze bardzo tak po co od na do ktory ktore jego "
    "mam tego jeszcze oraz przy bedzie zeby gdy",
    "Czech": "je na ze se jako ale pro jsem jsou by bylo byla jen uz jeste take nebo podle kdyz ktery ktere jeho tak "
    "pri od po aby velmi mezi bude protoze nas",
    "Romanian": "si in la cu pe nu este care din pentru sunt mai dar ca au fost fi sau prin dupa foarte acest "
    "aceasta lui despre cand cum sa fara unei unui ar",
    "Hungarian": "az es hogy nem egy is meg volt de ez csak ha mar van mint vagy ki azt akkor nagyon mert el lesz "
    "volna kell minden ezt szerint lehet mi",
    "Finnish": "ja on ei se etta oli han mutta kun niin kuin myos joka ovat tai vain nyt jos mina ole sen hyvin "
    "ollut olisi tama sitten viela jo kanssa mukaan",
    "Turkish": "bir ve bu icin cok da ile ama daha gibi olarak degil sonra kadar olan her ne ben mi oldu iyi hem veya "
    "ancak beni bana sen nasil boyle en",
    "Indonesian or Malay": "yang dan di untuk dengan tidak ini itu dari dalam akan pada juga saya ada adalah ke oleh "
    "bisa karena sudah mereka kami telah lebih atau anda seperti sangat tetapi",
    "Vietnamese": "va cua la co khong cho duoc trong mot nhung voi nay da cac toi nguoi den khi ra cung nhu rat vao "
    "lai phai thi neu nhieu ve tu",
}


WORDS = {language: frozenset(words.split()) for language, words in FREQUENT_WORDS.items()}
# A word -> the languages that have it.
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in WORDS.items():
    for _word in _words:
        _LANGUAGES.setdefault(_word, []).append(_language)
_WORD = re.compile(r"[^\W\d_]+")
# Letters that Unicode does not take for others with an accent.
_LIKE_ACCENTS = str.maketrans("łđøı", "ldoi")


def without_accents(text: str) -> str:
    """A text in small letters without accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_LIKE_ACCENTS))
    return "".join(c for c in letters if not unicodedata.combining(c))


def sample(texts: list[str]) -> list[str]:
    """The beginnings of some of the texts, evenly spaced."""
    return [text[:CHARACTERS] for text in texts[:: max(1, len(texts) // LOOKED_AT)]]


def language_of(text: str) -> str | None:
    """The language whose function words a text has most of, and more than one; None if it has none to tell by.

    >>> language_of("Das Paket ist noch nicht bei mir angekommen")
    'German'
    >>> language_of("WIN FREE COINS")
    """
    hits = dict.fromkeys(WORDS, 0)
    for word in _WORD.findall(without_accents(text)):
        for language in _LANGUAGES.get(word, ()):
            hits[language] += 1
    best = max(hits, key=hits.__getitem__)  # of ties the first: English
    return best if hits[best] > 1 else None


class Vocabulary:
    """The scripts and the languages that an encoder was made for, by the pieces of its vocabulary."""

    def __init__(self, pieces: Iterable[str]) -> None:
        pieces = [piece.strip() for piece in pieces]
        self.scripts = known_scripts(pieces)
        whole = {without_accents(piece) for piece in pieces}
        self.languages = {name for name, words in WORDS.items() if len(words & whole) >= ENOUGH_WORDS * len(words)}


def unknown_language(texts: list[str], vocabulary: Callable[[], Vocabulary]) -> str | None:
    """The script or language of most texts, if the vocabulary was not made for it; None where that is uncertain."""
    script = foreign_script(texts, lambda: vocabulary().scripts)
    if script is not None:
        return "Chinese" if script == "CJK" else f"{script.title()} script"
    language = most_are_in(texts)
    return None if language in (None, ENGLISH) or language in vocabulary().languages else language


def most_are_in(texts: list[str]) -> str | None:
    """The language of most texts, by their function words, if that is certain enough."""
    if len(texts) < FEWEST_TEXTS:
        return None
    looked_at = sample(texts)
    found = Counter(language for text in looked_at if (language := language_of(text)))
    if not found or found.total() < len(looked_at) / 4:
        return None
    language, count = found.most_common(1)[0]
    return language if 3 * count > 2 * found.total() else None


def advice(language: str, encoder: str) -> str:
    """A warning about texts in a language that an encoder was not made for."""
    better = CHINESE if language == "Chinese" else MULTILINGUAL
    return (
        f"most of these texts seem to be in {language}, which the encoder {encoder!r} was not made for: expect a worse "
        f"ranking. Better: {{encoder}}={better!r}, or the folder of any model made for the language"
    )
