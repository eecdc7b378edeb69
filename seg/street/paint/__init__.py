"""How each thing of the street is drawn, colour and class by one call."""
