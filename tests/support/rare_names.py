"""Fifty invented names of the contact-centre world, each in a sentence; no model knows them, hints can teach them."""

import sys
from collections.abc import Iterator
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


def speak_all() -> Iterator[tuple[str, str, Samples]]:
    """Each name, its sentence, and the sentence spoken by one of two voices on a telephone line, at 8 kHz.

    Raises:
        VoiceMissingError: The text-to-speech packages are not installed.
    """
    voice, rng = Voice.load(), np.random.default_rng(1)
    for number, (name, sentence) in enumerate(RARE_NAMES):
        spoken = voice.speak(
            sentence, VoiceSettings(shift=1.15 if number % 2 else 1.0, speed=1.0), line.SPEECH_LEVEL_DBFS
        )
        audio = np.pad(spoken, _PAUSE_SAMPLES)
        yield name, sentence, audio + line.line_noise(len(audio), rng)
