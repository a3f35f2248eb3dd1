"""Tests of the portal with a browser. A package, so that fixtures of scope `package` end with its last test."""
