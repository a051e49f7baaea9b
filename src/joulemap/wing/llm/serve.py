"""Door of this wing: what other wings use of served language models.

The stub beside this module lists the names, each with the module that defines it, and a name is imported when it is
first used. Names of decoders and engines, `Serving` and `ServedModel` ask a question; `Case`, `Load` and `Pool` are
deployments and their load; `ServingRow` and `Prediction` are measurements and what is predicted for them. Options of
commands are in `option`. Other modules of this wing may change at any time.
"""

from joulemap.system import make_lookup

__getattr__, __dir__ = make_lookup(__name__, __name__)
