# ruff: noqa: RUF001 (Turkish has a dotless i)
from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from strays.encoders import load_encoder
from strays.encoders.languages import WORDS, Vocabulary, language_of, most_are_in, unknown_language
from strays.errors import StraysWarning
from tests.conftest import farm_texts, save_tiny_bert

SENTENCES = {
    "English": [
        "The parcel has still not arrived and nobody answers the phone.",
        "I would like to know when my order will be sent.",
        "Great service, but the soup was cold.",
        "Could you please send me the invoice again?",
        "We have been waiting for an answer since Monday.",
    ],
    "German": [
        "Das Paket ist noch immer nicht angekommen und niemand geht ans Telefon.",
        "Ich möchte wissen, wann meine Bestellung verschickt wird.",
        "Die Bedienung war nett, aber die Suppe war kalt und das Brot auch nicht frisch.",
        "Können Sie mir die Rechnung bitte noch einmal schicken?",
        "Wir warten seit Montag auf eine Antwort.",
    ],
    "French": [
        "Le colis n'est toujours pas arrivé et personne ne répond au téléphone.",
        "Je voudrais savoir quand ma commande sera envoyée, car elle est pour ma mère.",
        "Le service est très bon mais la soupe était froide.",
        "Pouvez-vous m'envoyer la facture une nouvelle fois, avec les frais de port ?",
        "Nous attendons une réponse depuis lundi et nous ne sommes pas contents.",
    ],
    "Spanish": [
        "El paquete todavía no ha llegado y nadie contesta al teléfono.",
        "Quiero saber cuando van a enviar mi pedido, porque es un regalo para mi madre.",
        "El servicio es muy bueno, pero la sopa estaba fría.",
        "¿Me pueden mandar otra vez la factura por correo con los gastos?",
        "Llevamos desde el lunes esperando una respuesta.",
    ],
    "Italian": [
        "Il pacco non è ancora arrivato e nessuno risponde al telefono.",
        "Vorrei sapere quando sarà spedito il mio ordine, perché è un regalo per mia madre.",
        "Il servizio è molto gentile ma la zuppa non era calda.",
        "Potete mandarmi la fattura una seconda volta con le spese della spedizione?",
        "Sono tre giorni che aspettiamo una risposta, non è possibile.",
    ],
    "Portuguese": [
        "A encomenda ainda não chegou e ninguém atende o telefone, o que é muito mau.",
        "Gostaria de saber quando é enviada a minha compra, porque não tenho mais tempo.",
        "O serviço é muito bom, mas a sopa estava fria.",
        "Podem enviar mais uma vez a fatura para o meu endereço?",
        "Desde segunda que não temos uma resposta.",
    ],
    "Dutch": [
        "Het pakket is nog steeds niet aangekomen en niemand neemt de telefoon op.",
        "Ik wil graag weten wanneer mijn bestelling wordt verstuurd.",
        "De bediening was goed, maar de soep was niet warm.",
        "Kunt u mij de rekening nog een keer sturen?",
        "Wij wachten al sinds maandag op een antwoord.",
    ],
    "Polish": [
        "Paczka jeszcze nie doszła i nikt nie odbiera telefonu.",
        "Chcę wiedzieć, kiedy moje zamówienie będzie wysłane, bo to prezent dla mamy, a czasu już nie ma.",
        "Obsługa jest bardzo miła, ale zupa była zimna.",
        "Czy może pan jeszcze raz wysłać mi fakturę?",
        "Od poniedziałku czekamy na odpowiedź, ale nic się nie dzieje.",
    ],
    "Turkish": [
        "Paket daha gelmedi ve telefona bakan da yok.",
        "Bu siparişin ne zaman geleceğini öğrenmek için yazıyorum.",
        "Servis çok iyi ama çorba soğuk gibi.",
        "Bana faturayı bir daha gönderir misiniz, çünkü ilk fatura kayboldu, teşekkürler ve iyi günler?",
        "Bir hafta oldu, ama cevap yok, bu çok kötü.",
    ],
}
OTHERS = [language for language in SENTENCES if language != "English"]
ENGLISH_ONLY = Vocabulary(WORDS["English"])


def pile(language: str, n: int = 40) -> list[str]:
    return [f"{i}. {SENTENCES[language][i % 5]}" for i in range(n)]


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_shows_its_language(language: str) -> None:
    assert {sentence: language_of(sentence) for sentence in SENTENCES[language]} == dict.fromkeys(
        SENTENCES[language], language
    )


@pytest.mark.parametrize("text", ["", "WIN FREE COINS", "Müller GmbH & Co. KG, Köln", "12345 !!", "肝硬化是什么病"])
def test_what_has_no_function_words_shows_none(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize("language", OTHERS)
def test_a_pile_in_another_language_is_noticed(language: str) -> None:
    assert unknown_language(pile(language), lambda: ENGLISH_ONLY) == language
    assert unknown_language(pile(language), lambda: Vocabulary(WORDS[language])) is None


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_a_mixed_pile_draws_no_warning(share: float) -> None:
    n = round(100 * share)
    assert unknown_language(pile("German", n) + pile("English", 100 - n), lambda: ENGLISH_ONLY) is None


def test_names_titles_and_few_texts_draw_no_warning() -> None:
    assert most_are_in(["Müller GmbH, Köln"] * 100) is None
    assert most_are_in(pile("German", 5) + ["Müller GmbH, Köln"] * 100) is None
    assert most_are_in(pile("German", 19)) is None
    assert most_are_in(farm_texts(100)) in (None, "English")


def test_a_piece_of_a_vocabulary_counts_whatever_its_case_accents_and_spaces() -> None:
    assert Vocabulary([f" {word.upper()} " for word in WORDS["German"]]).languages == {"German"}
    assert "French" in Vocabulary(["été", "être", "très", "même", *WORDS["French"]]).languages


@pytest.mark.parametrize("name", ["{}", "fast:{}"])
def test_every_encoder_warns_once_and_says_what_to_do(name: str, tiny_bert: Path) -> None:
    encoder = load_encoder(name.format(tiny_bert))
    with pytest.warns(StraysWarning, match=r"seem to be in German, which .* not made for: .*encoder='.*multilingual"):
        encoder.encode(pile("German"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(pile("German"))
        encoder.encode(pile("English"))
        load_encoder(name.format(tiny_bert)).without_warnings().encode(pile("German"))


@pytest.mark.parametrize("name", ["{}", "fast:{}"])
def test_an_encoder_made_for_the_language_does_not_warn(name: str, tmp_path: Path) -> None:
    save_tiny_bert(tmp_path, words=sorted(WORDS["German"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_encoder(name.format(tmp_path)).encode(pile("German"))


def test_fast_warns_of_scripts_too(tiny_bert: Path) -> None:
    with pytest.warns(StraysWarning, match=r"in Cyrillic script, which.*multilingual"):
        load_encoder(f"fast:{tiny_bert}").encode(["Привет, как дела?"])
