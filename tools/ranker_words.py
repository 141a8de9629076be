"""Words for made-up training documents: names, trades, places, labels in several languages."""

from __future__ import annotations


def _phrases(text: str) -> tuple[str, ...]:
    """The phrases between bars."""
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


NAMES = _phrases(
    """
    Northern | Sunrise | Maple | Harbour | Golden | Silver | Blue | Green | Red | Lion | Eagle |
    Dragon | Star | Ocean | River | Mountain | Valley | Oak | Pine | Cedar | Royal | Prime |
    Global | United | First | Central | Metro | City | Apex | Alpha | Delta | Omega | Nova | Terra
    | Luna | Sol | Vista | Bella | Casa | Schmidt | Müller | Weber | Fischer | Keller | Dubois |
    Martin | Leroy | Garcia | Lopez | Rossi | Bianchi | Silva | Costa | Jansen | Nielsen | Larsen
    | Novak | Kowalski | Tan | Lim | Wong | Lee | Chong | Ng | Ahmad | Ismail | Kumar | Singh |
    Patel | Sharma | Nguyen | Tran | Kim | Park | Sato | Suzuki | Baker | Miller | Cooper |
    Johnson | Brown | Taylor | Wilson | Clark | Evans | Harris | Aik | Seng | Huat | Hin | Kee |
    Yong | Fatt | Sin | Mei | Wah | Happy | Lucky | Fresh | Fast | Easy | Smart | Super | Mega |
    Mini | Best | Top | Pro | Max | Jaya | Maju | Indah | Murni | Setia | Bintang | Delima |
    Kencana | Sentosa
    """
)
TRADES = _phrases(
    """
    Trading | Restaurant | Cafe | Hardware | Stationery | Bakery | Pharmacy | Electrical | Motors
    | Machinery | Foods | Supplies | Services | Marketing | Holdings | Enterprise | Industries |
    Engineering | Construction | Consulting | Solutions | Systems | Technologies | Logistics |
    Travel | Fashion | Books | Furniture | Mart | Supermarket | Store | Shop | Kitchen | Bistro |
    Grill | Pizza | Coffee | Clinic | Optical | Florist | Jewellery | Toys | Sports | Pets |
    Seafood | Handel | Bau | Technik | Verlag | Metzgerei | Boulangerie | Librairie | Garage |
    Tienda | Panaderia | Farmacia | Ristorante | Gelateria | Papeleria | Bäckerei | Kedai |
    Restoran | Pasaraya | Perniagaan | Farmasi
    """
)
FORMS = _phrases(
    """
    SDN BHD | SDN. BHD. | S/B | Bhd | PLT | Pte Ltd | Pty Ltd | Ltd | Ltd. | Limited | LLC | Inc.
    | Inc | Corp. | Co. | GmbH | AG | GmbH & Co. KG | e.K. | S.A. | SARL | SAS | S.L. | SpA |
    S.r.l. | B.V. | NV | AB | A/S | Oy | Sp. z o.o. | Pvt Ltd | PLC | LLP | (M) SDN BHD
    """
)
TOWNS = _phrases(
    """
    Springfield | Riverton | Lakewood | Fairview | Ashford | Kingsbridge | Neustadt | Altdorf |
    Rosenheim | Freiburg | Beaumont | Clermont | Villeneuve | Saint-Martin | Alcala | Montoya |
    Valverde | Rovigo | Ferrara | Oldenzaal | Petaling | Klang | Ipoh | Melaka | Seremban |
    Kuching | Taiping | Muar | Kajang | Pune | Jaipur | Surat | Odense | Viborg | Lund | Umea |
    Turku | Gdynia | Lublin | Brno | Graz | Linz | Thun
    """
)
STATES = _phrases(
    """
    CA | NY | TX | WA | FL | IL | OH | Selangor | Johor | Perak | Penang | Bayern | Hessen | NSW |
    VIC | QLD | ON | BC
    """
)
COUNTRIES = _phrases(
    """
    Malaysia | Germany | France | Spain | Italy | USA | UK | Singapore | India | Austria | Canada
    | Australia
    """
)
ISSUE_LABELS = _phrases(
    """
    Date | Invoice Date | Bill Date | Receipt Date | Issued | Date of issue | Datum |
    Rechnungsdatum | Fecha | Tarikh | Data | DATE | Trans Date
    """
)
MONTHS = _phrases(
    """
    Jan | Feb | Mar | Apr | May | Jun | Jul | Aug | Sep | Oct | Nov | Dec
    """
)
HEADER_NOTES = _phrases(
    """
    TAX INVOICE | RECEIPT | CASH BILL | Welcome | *** COPY *** | Thank you, please come again |
    INVOICE | CASH SALES | Official Receipt | Rechnung | DUPLICATE
    """
)
TOTAL = _phrases(
    """
    Total | TOTAL | Grand Total | Total Amount | Total Due | Amount Due | Total Payable | Balance
    Due | Net Total | Nett Total | Total RM | Total (RM) | Bill Total | Total Bill | Total Incl.
    GST | Total (Incl VAT) | Total Sales (Inclusive of GST) | TOTAL AMOUNT | Invoice Total |
    Amount Payable | Net Amount | To Pay | Total inc tax | Total TTC | Net à payer | Gesamtbetrag
    | Summe | Gesamt | Zu zahlen | Importe total | Total a pagar | Totale | Totaal | Te betalen |
    Jumlah | Jumlah Besar | Total Amount Payable | Total USD
    """
)
ROUNDED = _phrases(
    """
    Rounded Total | Total Rounded | Total After Rounding | Nett | Net Payable | Total Amt Rounded
    | Total After Adj | Grand Total | Amount Due | Total Due | Total | TTL AFT RND
    """
)
SUBTOTAL = _phrases(
    """
    Subtotal | Sub Total | SUB-TOTAL | Sub-Total (excl.) | Total Excl. GST | Total before tax |
    Total (Excluding GST) | Net | Gross Amount | Zwischensumme | Netto | Sous-total | Total HT |
    Subtotale | Base imponible | Total Supplies | Total Sales (Excluding GST)
    """
)
TAX = _phrases(
    """
    GST | GST 6% | Tax | VAT | VAT 20% | Sales Tax | MwSt. 19% | TVA 20% | IVA | BTW | SST 6% |
    Total GST | Total Tax | GST Amount | Tax Amount | Add GST | Service Tax | Total 6% Tax
    """
)
ROUNDING = _phrases(
    """
    Rounding | Rounding Adj | Rounding Adjustment | RND ADJ | Round | Pembulatan
    """
)
DISCOUNT = _phrases(
    """
    Discount | Disc | Total Discount | Less | You saved | Total Savings | Rabatt | Voucher
    """
)
QUANTITY = _phrases(
    """
    Total Qty | Total Items | Item Count | Qty | Total Quantity | No of Items | Total Pcs
    """
)
CASH = _phrases(
    """
    Cash | CASH | Payment | Tendered | Amount Paid | Visa | Mastercard | Card | Bar | Tunai | Cash
    Received | Paid | Debit Card | Efectivo
    """
)
CHANGE = _phrases(
    """
    Change | CHANGE | Change Due | Rückgeld | Baki | Balance | Cambio | Your Change
    """
)
SERVICE = _phrases(
    """
    Service Charge | Service Charge 10% | Svc Chg | Tip | Delivery | Shipping
    """
)
OTHER_SUMS = _phrases(
    """
    Deposit | Total Exchange | Total Return | Total Foc | Outstanding | Points Earned | Member
    Savings | Previous Balance | Total Weight | Total Disc. | Total Vouchers | Retour | Pfand
    """
)
FORM_LABELS = _phrases(
    """
    Invoice No | Order No | Reference | Customer No | Account Number | Policy Number | Permit No |
    Name | First Name | Last Name | Applicant | Customer | Contact | Patient | Employee | Attn |
    Department | Project | Subject | Title | Position | Nationality | Country | City | State |
    Brand | Model | Serial No | Product | Colour | Size | Weight | Quantity | Unit | Terms |
    Payment Terms | Currency | Delivery Method | Ship Via | Sales Rep | Prepared By | Approved By
    | Bill To | Ship To | Bank | IBAN | SWIFT | Tax ID | VAT No | Passport No | Licence No |
    Telephone | Mobile | Email | Website | Room | Table | Gate | Seat | Flight | Class | Status |
    Rechnungsnummer | Kundennummer | Bestellnummer | Ansprechpartner | Betreff | Numéro de facture
    | Numéro client | Objet | Número de factura | Cliente | Referencia | Numero fattura | Codice |
    Payer's name | Recipient's TIN | Employer identification number | Box 1 Wages | Remarks |
    Purpose
    """
)
PLAIN_WORDS = _phrases(
    """
    standard | express | pending | approved | red | blue | large | small | annual | monthly |
    north | south | office | sample | warehouse | garden | steel | paper | wooden | classic |
    premium | basic | urgent | regular | single | double | open | closed
    """
)
FORM_TITLES = _phrases(
    """
    APPLICATION FORM | Order Confirmation | INVOICE | Work Report | Registration | Rechnung |
    Statement | Delivery Note | Facture | Data Sheet
    """
)
