"""Short pages about what many commands share: `ixion help formats`."""

from __future__ import annotations

from typing import Final, NamedTuple


class Page(NamedTuple):
    title: str
    text: str


FORMATS: Final = r"""ixion consume --format FORMAT (or -f), one of

  value   the value and a line end (the default)
  text    partition:offset, time, key, value and headers, separated by tabs
  json    one JSON object a line, which 'ixion produce --json' reads; --json is
          short for it
  '{…}'   a template with the fields topic, partition, offset, timestamp, time,
          key, value and headers: '{offset} {key}={value}'; {{ is a brace
  '%…'    kcat's letters:
          %t topic       %k key            %s or %v value      %T timestamp
          %p partition   %K key's length   %S value's length   %h headers
          %o offset      %% a percent sign  %R value's length in four bytes

\t, \n, \r and \0 mean a tab, a line end, a carriage return and a zero byte,
\x41 the byte with that number. A line end is added unless the text ends in one
or in \0, or has a %R. A null key or value is written as --null-marker.

ixion produce reads lines: the value alone, KEY and VALUE with --key-separator,
headers before them with --headers-separator, or JSON with --json. In JSON,
bytes that are not UTF-8 are {"base64": "…"}."""

OFFSETS: Final = """For consume --offset and --until, topic offsets --at, topic delete-records and
perf consume --offset:

  earliest, beginning   the first record
  latest, end           after the last record
  stored                where the group has committed (consume --group only)
  120                   offset 120 of every partition, or the nearest one
  -10                   ten before the end of every partition
  2026-11-01T00:00      the first record of that time or later, local time;
                        also written @2026-11-01T00:00
  2026-11-01T00:00Z     the same in UTC; +02:00 works, too
  @-1h                  an hour ago; s, m, h, d and w are the units
  @1767225600000        the same in milliseconds since 1970"""

FILTERS: Final = r"""ixion consume --filter EXPRESSION, and the filter of the live page:

  value.status == "failed" and value.total >= 100
  key contains "c-12" or headers.trace startswith "9f"
  value.items[*].sku in ("a-1", "a-2") and not value.test
  value matches "^order-[0-9]+$" and partition != 3

A record has key, value, headers.NAME, partition, offset, timestamp (in
milliseconds), size, and any: its key, its value, and the names and values of
its headers. Steps behind key, value or a header read it as JSON: .name,
["a name"], [0], [-1], and [*] for all elements, of which one must fit. What is
not there is null.

  == != < <= > >=   numbers by value, texts byte by byte
  contains          a part of a text, or an element of a list
  startswith, endswith
  matches           a regular expression of RE2, anywhere in the text
  in (…)            one of several texts or numbers
  and, or, not, ( )

Texts have double quotes, with JSON's escapes, or single ones, without any."""

SETTINGS: Final = """Settings have Kafka's names and meanings.

A broker takes them from these sources; a later one overrides
  --config FILE       lines of name=value, as in Kafka's server.properties
  IXION_LOG_DIRS=…    the environment: upper case, dots as underscores
  --set NAME=VALUE    the command line; --port and --data set two of them

While it runs, 'ixion config' changes dynamic settings:
  ixion config get topic orders            what was set for the topic
  ixion config set topic orders retention.ms=3600000
  ixion config unset topic orders retention.ms
  ixion config get broker default --all    all brokers; broker 1001 for one
  ixion config get group billing           settings of a group
  ixion config set logger 1001 ixion.broker.log=DEBUG

A misspelt name is reported with the closest valid one."""

CONNECTION: Final = """Every command that connects takes these, before or after its name:
  -b HOST:PORT             a broker, or several with commas
  --timeout SECONDS        how long to try
  --tls-ca FILE            connect over TLS; the authorities to trust, as PEM
  --tls                    the same with the authorities of the system
  --tls-cert FILE          our own certificate with its private key, as PEM
  --tls-any-host           accept a certificate that names another host
  --user NAME              log in as this user
  --password-file FILE     its first line is the password (default: prompt)
  --mechanism NAME         PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (the default)
  --token-file FILE        log in with a delegation token or a JWT
  --profile NAME           take these options from a profile

A password is never on the command line. ~/.config/ixion/profiles.toml keeps
sets of these options, by name:
  [default]
  bootstrap = "127.0.0.1:9092"

  [production]
  bootstrap = "kafka-1:9094,kafka-2:9094"
  tls_ca = "~/ca.pem"
  user = "alice"
  password_file = "~/.config/ixion/alice.password"

'ixion topic list --profile production' uses one; without --profile it is
'default'. The command line overrides the environment, which overrides the
profile. A profile may hold a password, if only you can read the file
(chmod 600). XDG_CONFIG_HOME moves ~/.config."""

ENVIRONMENT: Final = """Of commands that connect, unless the option is given ('ixion help connection'):
  IXION_BOOTSTRAP       --bootstrap (default: 127.0.0.1:9092)
  IXION_PROFILE         --profile
  IXION_TLS_CA          --tls-ca
  IXION_TLS_CERT        --tls-cert
  IXION_USER            --user
  IXION_PASSWORD_FILE   --password-file
  IXION_TOKEN_FILE      --token-file
  IXION_MECHANISM       --mechanism
  XDG_CONFIG_HOME       where ixion/profiles.toml is (default: ~/.config)

Of 'ixion serve': settings, in upper case, with underscores for dots
  IXION_…               IXION_NUM_PARTITIONS=3 is num.partitions=3

Of all commands
  COLUMNS               the width of help pages and tables (default: terminal)
  TZ                    the time zone of times without one
  SHELL                 the shell of 'ixion completion'
  TERM                  dumb: 'ixion wheel' prints lines

Of pipelines
  JAVA_HOME             the Java of Spark
  XDG_CACHE_HOME        where ixion/ keeps jars and archives (default: ~/.cache)
  XDG_RUNTIME_DIR       where ixion-UID/ keeps locks (default: /tmp)
  IXION_CLASS_ARCHIVES  another folder for archives of Spark's classes, or off
  OPENLINEAGE_URL       where events of runs are sent; OPENLINEAGE_ENDPOINT,
                        OPENLINEAGE_API_KEY, OPENLINEAGE_NAMESPACE and
                        OPENLINEAGE_DISABLED as in OpenLineage's own clients"""

EXIT_CODES: Final = """  0     done
  1     failed; standard error has one line that says why
  2     usage error; the same
  75    a pipeline failed, and running it again can help
  130   interrupted by Ctrl-C
  143   ended by SIGTERM; 129 by SIGHUP, when the terminal is closed

Commands that run until they are stopped end with 0: serve, wheel, group
describe --watch, and consume without --exit-at-end, --until and -n. So does
a command whose reader closes the pipe: 'ixion consume orders | head'.

Each of these signals lets a command finish: a member of a group commits and
leaves, a producer sends the lines that it has read."""

TOPICS: Final = {
    "formats": Page("How records are written and read", FORMATS),
    "offsets": Page("How to name a place in a topic", OFFSETS),
    "settings": Page("Where settings come from, and how to change them", SETTINGS),
    "connection": Page("How to reach a cluster over TLS and with a login", CONNECTION),
    "environment": Page("Environment variables", ENVIRONMENT),
    "exit-codes": Page("What a command's exit code says", EXIT_CODES),
}
