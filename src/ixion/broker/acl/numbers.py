"""The numbers of `language.model.acl_names` as plain integers: these are quicker in the checks of every request."""

from __future__ import annotations

from typing import Final

READ: Final = 3
WRITE: Final = 4
CREATE: Final = 5
DELETE: Final = 6
ALTER: Final = 7
DESCRIBE: Final = 8
CLUSTER_ACTION: Final = 9
DESCRIBE_CONFIGS: Final = 10
ALTER_CONFIGS: Final = 11
IDEMPOTENT_WRITE: Final = 12
CREATE_TOKENS: Final = 13
DESCRIBE_TOKENS: Final = 14
TOPIC: Final = 2
GROUP: Final = 3
CLUSTER: Final = 4
TRANSACTIONAL_ID: Final = 5
DELEGATION_TOKEN: Final = 6
USER: Final = 7
