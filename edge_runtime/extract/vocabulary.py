"""Word classes that documents of many kinds and languages share.

Classes say what a line is *about* (a telephone number, tax, change given back). They are evidence
with learned weights, never rules. Matching folds case, accents and the letters that recognisers
confuse (`i l 1 |`, `o 0`, `s 5`), and finds longer words inside glued text such as `GSTSummary`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from edge_runtime.extract.confusions import fold

_CONFUSED = str.maketrans({"i": "l", "1": "l", "|": "l", "!": "l", "0": "o", "5": "s"})
_SHORT = 4
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

AMOUNT_CUES: dict[str, str] = {
    "total": "total ttl totale totaal jumlah gesamt gesamtbetrag summe suma razem importe montant "
    "endbetrag gesamtsumme итого 合計 合计 总计 總計",
    "grand": "grand nett due payable pay rounded zahlbetrag payer pagar betalen zahlen balance "
    "owed",
    "after_rounding": "rounded aftrnd afterrounding",
    "subtotal": "subtotal sub-total sub_total zwischensumme sous-total subtotale subtotaal sstotal "
    "小計 小计",
    "tax": "gst vat tax tva iva mwst ust btw sst pst hst ppn taxes steuer umsatzsteuer impuesto "
    "imposta moms",
    "excluding": "excl excluding exclusive exc ex netto before hors ohne sin zzgl exclude ht",
    "including": "incl including inclusive inc brutto ttc inkl include",
    "cash": "cash tender tendered paid payment visa master mastercard card credit debit amex "
    "efectivo tunai received bar pago bezahlt gegeben espèces contanti",
    "change": "change ruckgeld wechselgeld baki vuelto resto rendu cambio wisselgeld",
    "rounding": "rounding round rnd pembulatan arrondi adj adjustment",
    "discount": "discount disc saving savings save rabatt remise descuento sconto voucher diskaun "
    "korting promo less off nachlass coupon",
    "quantity": "qty quantity item items pcs unit units stuck menge cantidad quantite count nos "
    "kuantiti anzahl",
    "price": "price u/p rate preis prix precio prezzo einzelpreis harga uprice",
    "summary": "summary analysis code breakdown",
    "service": "service srv charge chg tip gratuity svc servicecharge shipping freight delivery "
    "porto versand",
    "points": "point points member loyalty reward bonus earned",
}

DATE_CUES: dict[str, str] = {
    "date": "date datum fecha tarikh data dato dated datetime paivays tanggal issued "
    "rechnungsdatum "
    "dt 日期 日付",
    "due": "due expiry expires expire exp valid until fallig faellig echeance vencimiento payable "
    "scadenza verfall best",
    "other_event": "delivery ship shipped shipping print printed birth dob order ordered period "
    "from "
    "to departure arrival liefer lieferdatum livraison since effective joined promotion starting "
    "member contest",
    "document": "invoice receipt bill rechnung facture factura fattura invois resit statement "
    "sales "
    "inv document doc trans transaction",
    "time": "time am pm uhr heure hora masa",
}

LINE_CUES: dict[str, str] = {
    "phone": "tel phone telephone fax hotline mobile hp handphone telefon telefono whatsapp "
    "whatsapps careline call contact teléfono telp gsm",
    "web": "www http https com email e-mail mail website facebook instagram",
    "registration": "reg regno registration gst vat tin brn roc company_no co.no co.reg coreg ssm "
    "siret siren ustid uid ein abn acn tax_id gstid license licence permit hrb steuernummer "
    "registered nif cif kvk lesen",
    "title": "invoice receipt bill cash_sales tax_invoice resit invois rechnung facture factura "
    "quittung statement order quotation simplified cashbill ticket bon copy duplicate original "
    "reprint slip",
    "numbering": "no number nr num ref reference id code doc document trans transaction slip "
    "receipt# invoice# bill# pos counter terminal table queue order",
    "person": "cashier served staff salesperson operator attn attention waiter clerk user name mr "
    "mrs ms guest employee prepared seller agent salesman kasir bediener",
    "customer": "bill_to billed sold_to ship_to customer client deliver_to member kunde "
    "destinataire buyer account recipient",
    "greeting": "thank thanks welcome again please come visit enjoy merci danke gracias grazie "
    "terima kasih nice day",
    "terms": "goods sold returnable refund exchange return returns condition conditions keep "
    "subject without within warranty policy retain proof purchase responsible",
    "item": "item qty price amount description desc uom disc total code rm",
    "branch": "branch outlet store cawangan filiale location formerly known owned trading_as",
    "time": "time date am pm",
}

LEGAL_FORMS = (
    "sdn bhd", "sdnbhd", "s/b", "sb", "bhd", "berhad", "plt", "pte ltd", "pty ltd", "ltd",
    "limited", "llc", "llp", "lp", "inc", "incorporated", "corp", "corporation", "co", "company",
    "plc", "gmbh", "ag", "kg", "ohg", "ug", "gbr", "e.k", "se", "mbh", "s.a", "sa", "sas", "sarl",
    "s.a.r.l", "eurl", "sl", "s.l", "s.l.u", "spa", "s.p.a", "srl", "s.r.l", "bv", "b.v", "nv",
    "n.v", "vof", "oy", "oyj", "ab", "a/s", "aps", "as", "asa", "sp. z o.o", "s.r.o", "kft", "zrt",
    "doo", "d.o.o", "ooo", "pt", "tbk", "pvt ltd", "private limited", "k.k", "kabushiki kaisha",
    "co. ltd", "co., ltd", "cv", "c.v", "s.c", "s.a. de c.v", "ltda", "eireli", "lda",
)  # fmt: skip
"""How names of companies end (or, for a few, begin) in many countries."""

ORGANISATION_WORDS = (
    "enterprise enterprises trading restaurant restoran company store stores shop mart market "
    "supermarket hypermarket hotel bank university school clinic pharmacy services service "
    "industries holdings group international stationery hardware bakery cafe coffee house kitchen "
    "foods food marketing electrical electronics machinery supply supplies centre center station "
    "petrol motor motors auto engineering construction consulting solutions systems technologies "
    "software media books bookstore fashion beauty health care cosmetics florist gift gifts "
    "pizza burger grill bistro bar pub cash carry & und et sons brothers bros partners associates "
    "agency studio salon spa gym laundry travel tours airlines logistics transport express "
    "insurance foundation institute association club society office ministry department hospital "
    "dental medical optical furniture jewellery toys sport sports pet farm seafood confectionery "
    "kedai pasaraya perniagaan syarikat farmasi pasar mini runcit restaurante tienda boutique "
    "apotheke backerei handel handels verlag werk werke bau technik metzgerei"
)
STREET_WORDS = (
    "street st road rd avenue ave lane ln drive dr boulevard blvd way court ct square sq terrace "
    "highway hwy parkway pkwy circle crescent place pl close mews alley jalan jln lorong lrg "
    "persiaran lebuh lebuhraya jl gang strasse straße str weg platz allee gasse ring ufer damm rue "
    "chemin place quai cours impasse calle c/ avenida avda plaza paseo carretera camino via viale "
    "piazza corso largo strada rua travessa praça estrada straat laan plein gracht kade vej gade "
    "gatan vägen katu tie ulica ul aleja utca út prospekt"
)
UNIT_WORDS = (
    "no lot unit floor flr suite ste level block blk apt apartment room rm building bldg tower "
    "wisma menara plot ground gf g/f ground_floor stock étage piso planta etage batu house p.o box "
    "po_box pobox postfach bp mile km off nr ste"
)
AREA_WORDS = (
    "taman tmn bandar bdr seksyen sek section kampung kg mukim desa pusat kawasan perindustrian "
    "industrial park estate village town city township district county province state mall plaza "
    "complex kompleks centre center shopping arcade dataran medan town_center bukit sungai lembah "
    "darul negeri utama north south east west industriegebiet gewerbepark polígono zone zona zac "
    "barrio colonia colony nagar sector"
)
COUNTRIES = (
    "malaysia singapore indonesia thailand philippines vietnam china japan korea taiwan india "
    "pakistan bangladesh australia zealand usa u.s.a america states canada mexico brazil argentina "
    "chile colombia peru england scotland wales ireland kingdom uk france germany deutschland "
    "austria österreich switzerland schweiz suisse italy italia spain españa portugal netherlands "
    "nederland belgium belgique belgië luxembourg denmark danmark sweden sverige norway norge "
    "finland suomi poland polska czech hungary romania greece turkey russia ukraine israel egypt "
    "morocco nigeria kenya africa emirates uae dubai qatar"
)


@lru_cache(maxsize=8192)
def cue_key(text: str) -> str:
    """`text` folded so that lookalike letters compare equal."""
    return fold(text).translate(_CONFUSED)


def unglue(text: str) -> str:
    """`text` with blanks where upper and lower case show that words were run together."""
    return _GLUED.sub(" ", text)


def _pattern(word: str) -> str:
    key = re.escape(cue_key(word.replace("_", " "))).replace(r"\ ", r"\W{0,3}")
    letters = [c for c in word if c.isalnum()]
    if len(letters) <= _SHORT or not word.isascii():
        wide = len(letters) and not word.isascii()
        return key if wide else rf"(?<![a-z]){key}(?![a-z])"
    return key


@lru_cache(maxsize=256)
def cue_pattern(words: str) -> re.Pattern[str]:
    """One pattern for a blank-separated list of words, to be searched in `cue_key(text)`."""
    return re.compile("|".join(_pattern(w) for w in sorted(words.split(), key=len, reverse=True)))


@lru_cache(maxsize=1)
def legal_form_pattern() -> re.Pattern[str]:
    """Finds a legal form as words of its own in `cue_key(text)`."""
    parts = sorted(LEGAL_FORMS, key=len, reverse=True)
    keys = [
        re.escape(cue_key(p)).replace(r"\ ", r"[\s.]{0,3}").replace(r"\.", r"\.?\s?") for p in parts
    ]
    return re.compile(rf"(?<![a-z])(?:{'|'.join(keys)})\.?(?![a-z])")


@lru_cache(maxsize=8192)
def _keys(text: str) -> tuple[str, ...]:
    key, apart = cue_key(text), cue_key(unglue(text))
    return (key,) if key == apart else (key, apart)


def classes_of(text: str, cues: dict[str, str]) -> frozenset[str]:
    """Names of the word classes that `text` has a word of."""
    keys = _keys(text)
    return frozenset(
        name for name, words in cues.items() if any(cue_pattern(words).search(key) for key in keys)
    )


def count_words(text: str, words: str) -> int:
    """How many words of the list occur in `text`."""
    return max(len(cue_pattern(words).findall(key)) for key in _keys(text))
