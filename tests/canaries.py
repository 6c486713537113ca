"""Names of pets for long conversations: each is in a tenth of the messages, so that none becomes a common word."""

from typing import Final

CANARIES: Final = ("Alba", "Bruno", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo", "Ida", "Jonas")
FACTS: Final = [f"My canary {name} sings at noon." for name in CANARIES]
