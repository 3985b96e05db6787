"""How the sample calls are made: scripts of dialogues, a synthetic voice, a telephone line and a timeline."""
