"""A module that ends the process when imported, as a script without a main guard would."""

import sys

sys.exit("not meant to be imported")
