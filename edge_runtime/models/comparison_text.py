"""Text on which a requantised model is compared with its original.

Written for this purpose: prose, and the kind of lines that documents are made of, so that the
figures speak of the work the models are used for.
"""

from __future__ import annotations

TEXT = """The parcel had been left beside the door sometime in the afternoon. When Marta came home
she read the label twice, because the street was right and the number was not, and then carried it
over to the neighbours. Nobody there had ordered anything either. In the end they opened the
delivery note together and found the order number, the date and the name of the shop.

HARBOUR STREET HARDWARE LTD
14 Harbour Street, 3rd Floor
Port Ellis 40210
Tel: 03-5512 8890    Reg. No. 201-88-4471
TAX INVOICE
Invoice no.: HS-004182        Date: 17/03/2021
Cashier: Lena                 Time: 14:52
Qty  Description                 Price     Amount
2    Wood screw 4 x 40 (100)      6.90      13.80
1    Paint brush 50 mm            4.25       4.25
3    Sanding paper P120           1.10       3.30
Subtotal                                    21.35
Tax 6%                                       1.28
Total                                       22.63
Cash                                        30.00
Change                                       7.37
Thank you for your visit. Goods sold are not returnable without this receipt.

Question: What is the total of the invoice?
Answer: 22.63
Question: When was it issued?
Answer: 2021-03-17

{"company": "Harbour Street Hardware Ltd", "date": "2021-03-17", "total": 22.63, "currency": null}

Dear Mr Olsen, thank you for your letter of 2 May. We confirm the appointment on Tuesday, 11 May, at
half past nine in our office. Please bring your passport, the signed form and two recent payslips.
The fee of EUR 45.00 can be paid by card. If you are prevented, call us under 0441 / 77 20 15 so
that we can find another day. With kind regards, A. Brandt, Customer Service

Name: Julia Reyes        Date of birth: 1988-11-30        Nationality: Spanish
Document no.: X4471902L  Valid until: 2029-06-14          Place of issue: Vigo
"""
