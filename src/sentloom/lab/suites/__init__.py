"""The evaluation sets of the papers: where they come from, and how they are scored."""

from sentloom.lab.suites.domain import DOMAIN
from sentloom.lab.suites.glue import GLUE
from sentloom.lab.suites.multilingual import MULTILINGUAL
from sentloom.lab.suites.sts import AFS, STS
from sentloom.lab.suites.transfer import SENTGLUE, TRANSFER

# A set that is in several suites, such as STS-B, is the first one's.
SUITES = {suite.name: suite for suite in (STS, TRANSFER, SENTGLUE, MULTILINGUAL, DOMAIN, AFS, GLUE)}
