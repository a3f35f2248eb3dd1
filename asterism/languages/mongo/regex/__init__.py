"""Regular expressions of the protocol, which are those of PCRE: parsed here, run by RE2 or by our own matcher."""
