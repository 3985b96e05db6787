"""Fifty invented names of the contact-centre world, each in a sentence; no model knows them, hints can teach them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from sample_calls import line  # noqa: E402
from sample_calls.voice import Voice, VoiceSettings  # noqa: E402

from pipeline.types import Samples  # noqa: E402

_PAUSE_SAMPLES = 300 * line.SAMPLE_RATE_HZ // 1000

RARE_NAMES = (
    ("Zylocardin", "I need a refill of my Zylocardin before the weekend."),
    ("Brevantix", "The doctor told me to stop taking Brevantix last month."),
    ("Mirafenol", "Does the plan cover Mirafenol or not?"),
    ("Quandrexa", "She was switched from Quandrexa to something cheaper."),
    ("Tolvasemide", "I take one tablet of Tolvasemide every morning."),
    ("Oxyperilan", "My pharmacy has no Oxyperilan left."),
    ("Luminexor", "I am calling about the side effects of Luminexor."),
    ("Dorvantage", "We have a policy with Dorvantage since last year."),
    ("Kestravia", "My flight was booked through Kestravia in May."),
    ("Velmontic", "I would like to cancel my contract with Velmontic."),
    ("Norbrixen", "The invoice from Norbrixen is wrong again."),
    ("Halvenport", "Please send the engineer to the office in Halvenport."),
    ("Wexcombe", "I used to live in Wexcombe before I moved."),
    ("Strathvannoch", "The parcel went to Strathvannoch by mistake."),
    ("Ottermouth", "Is the branch in Ottermouth open on Saturday?"),
    ("Penhallick", "My surname is Penhallick and I have an appointment."),
    ("Szymborski", "Could you put me through to Mister Szymborski please?"),
    ("Vanterpool", "The account is in the name of Vanterpool."),
    ("Okonjeli", "I spoke with Miss Okonjeli on Tuesday."),
    ("Thistlewick", "This is Karen Thistlewick calling about my order."),
    ("Abernorth", "Doctor Abernorth signed the form already."),
    ("Grudzelan", "My husband is called Peter Grudzelan."),
    ("Fibrolink", "My Fibrolink router keeps losing the connection."),
    ("Teleworx", "I want to move my number to Teleworx."),
    ("Paynexus", "The payment went through Paynexus twice."),
    ("Cardolino", "I have lost my Cardolino card on the train."),
    ("Nuvabank", "I opened an account at Nuvabank yesterday."),
    ("Trustelle", "Trustelle has sent me a letter about the loan."),
    ("Solarvane", "Solarvane promised to repair the panels this week."),
    ("Hydrexa", "The boiler from Hydrexa makes a strange noise."),
    ("Aquatherma", "I bought the Aquatherma heater in your shop."),
    ("Mobivante", "How much is the Mobivante tariff per month?"),
    ("Skyrelle", "I booked two seats with Skyrelle to Madrid."),
    ("Transvectra", "Transvectra says that the truck left on Monday."),
    ("Parcelino", "The driver from Parcelino did not ring the bell."),
    ("Zentrosol", "The screen of my Zentrosol phone is broken."),
    ("Clarivox", "I cannot log in to the Clarivox portal."),
    ("Medisphera", "Medisphera refused to pay for the treatment."),
    ("Insurelia", "I want to renew my insurance with Insurelia."),
    ("Vitalgren", "Are there any discounts for Vitalgren members?"),
    ("Kormatex", "The Kormatex update deleted all my contacts."),
    ("Lexadrine", "He is allergic to Lexadrine, I think."),
    ("Ambrolisen", "The nurse gave me Ambrolisen for the cough."),
    ("Corvelast", "Is Corvelast safe for small children?"),
    ("Rennidale", "We are moving to Rennidale at the end of June."),
    ("Tarnbeck", "The meter in the Tarnbeck house is not working."),
    ("Drizzlecombe", "There is a power cut in Drizzlecombe again."),
    ("Fennimar Plus", "I would like to upgrade to Fennimar Plus today."),
    ("Castellane Gold", "My Castellane Gold card expires next week."),
    ("Orbis Kiteline", "The booking was made with Orbis Kiteline online."),
)

HELD_OUT_NAMES = (
    ("Belvatrone", "I was told to take Belvatrone after meals."),
    ("Cintrapid", "Is there a cheaper version of Cintrapid?"),
    ("Fexolumab", "My insurance rejected Fexolumab last week."),
    ("Nardozine", "She ran out of Nardozine on Friday."),
    ("Pelistrax", "The pharmacy gave me Pelistrax by mistake."),
    ("Ruvendal", "Can I take Ruvendal with coffee?"),
    ("Sorbinexa", "I have been on Sorbinexa for two years."),
    ("Umbratide", "The doctor wants me to start with Umbratide."),
    ("Yavosin", "He had a bad reaction to Yavosin."),
    ("Glentizole", "How many tablets of Glentizole are in a pack?"),
    ("Arkwellia", "We moved our pension to Arkwellia in March."),
    ("Bondarela", "The letter from Bondarela says I owe money."),
    ("Credivanta", "I have a loan with Credivanta."),
    ("Finnovelle", "The card from Finnovelle has not arrived."),
    ("Ledgerine", "I pay my bills through Ledgerine."),
    ("Mutualis", "My policy with Mutualis ends in June."),
    ("Pontavera", "I want to complain about Pontavera."),
    ("Sterlinque", "The transfer to Sterlinque did not work."),
    ("Valdorix", "They charged me twice at Valdorix."),
    ("Zendecasa", "I rent the flat through Zendecasa."),
    ("Brackenholt", "There is no signal in Brackenholt."),
    ("Crundleford", "The van is on its way to Crundleford."),
    ("Dunmorrow", "I live near the station in Dunmorrow."),
    ("Eskadale", "Please deliver it to the shop in Eskadale."),
    ("Fothermere", "We are staying in Fothermere until Sunday."),
    ("Garstenby", "The office in Garstenby is closed."),
    ("Inchvarren", "I grew up in Inchvarren."),
    ("Kilderstow", "The road to Kilderstow is blocked."),
    ("Llanwythen", "My mother lives in Llanwythen."),
    ("Mossgarth", "The power is out in Mossgarth."),
    ("Adebowski", "My name is Adebowski, with a W."),
    ("Bjarkensen", "I would like to speak to Mister Bjarkensen."),
    ("Cholmsby", "The contract was signed by Cholmsby."),
    ("Dragovanic", "Is Doctor Dragovanic in today?"),
    ("Etchevarro", "Miss Etchevarro promised to call me back."),
    ("Fitzwarnock", "The parcel is for Fitzwarnock."),
    ("Ghorbanfar", "Put it in the name of Ghorbanfar please."),
    ("Hruskovec", "My neighbour Hruskovec took the parcel."),
    ("Ivarsdottel", "The invoice goes to Ivarsdottel."),
    ("Jellicombe", "I spoke to somebody called Jellicombe."),
    ("Airvantis", "My Airvantis box has a red light."),
    ("Beamlio", "I cannot open the Beamlio app."),
    ("Cloudmerix", "The Cloudmerix password does not work."),
    ("Dialvora", "We want to switch from Dialvora to you."),
    ("Ecotherma", "The Ecotherma meter shows nothing."),
    ("Flixonar", "My Flixonar subscription was renewed without asking."),
    ("Gridessa", "Gridessa has sent me the wrong bill."),
    ("Homivox", "The Homivox alarm goes off every night."),
    ("Jetsarra", "I flew with Jetsarra on Monday."),
    ("Lumo Tervex", "I want to return the Lumo Tervex lamp."),
)
"""Fifty more, at which nobody looked when the limits were chosen."""


def speak_all(names: Sequence[tuple[str, str]] = RARE_NAMES) -> Iterator[tuple[str, str, Samples]]:
    """Each name, its sentence, and the sentence spoken by one of two voices on a telephone line, at 8 kHz.

    Raises:
        VoiceMissingError: The text-to-speech packages are not installed.
    """
    voice, rng = Voice.load(), np.random.default_rng(1)
    for number, (name, sentence) in enumerate(names):
        spoken = voice.speak(
            sentence, VoiceSettings(shift=1.15 if number % 2 else 1.0, speed=1.0), line.SPEECH_LEVEL_DBFS
        )
        audio = np.pad(spoken, _PAUSE_SAMPLES)
        yield name, sentence, audio + line.line_noise(len(audio), rng)
