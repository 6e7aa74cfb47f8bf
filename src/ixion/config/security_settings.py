"""TLS and SASL, for all listeners or, with the prefix `listener.name.NAME.`, for one."""

from __future__ import annotations

from typing import Any, Final

from ixion.config.setting import Kind, Scope, Setting, flag, integer, long, optional_string, secret, string, words

SSL_KEYSTORE_TYPE: Final = string(
    "ssl.keystore.type", "PEM", scope=Scope.PER_BROKER, doc="format of the key store: PEM or PKCS12"
)
SSL_KEYSTORE_LOCATION: Final = optional_string(
    "ssl.keystore.location",
    scope=Scope.PER_BROKER,
    doc="file with the private key and the certificate chain of the broker",
)
SSL_KEYSTORE_PASSWORD: Final = secret(
    "ssl.keystore.password", scope=Scope.PER_BROKER, doc="password of a key store in PKCS12"
)
SSL_KEYSTORE_KEY: Final = secret(
    "ssl.keystore.key", scope=Scope.PER_BROKER, doc="private key in PEM, instead of a file"
)
SSL_KEYSTORE_CERTIFICATE_CHAIN: Final = secret(
    "ssl.keystore.certificate.chain", scope=Scope.PER_BROKER, doc="certificate chain in PEM, instead of a file"
)
SSL_KEY_PASSWORD: Final = secret("ssl.key.password", scope=Scope.PER_BROKER, doc="password of the private key")
SSL_TRUSTSTORE_TYPE: Final = string(
    "ssl.truststore.type", "PEM", scope=Scope.PER_BROKER, doc="format of the trust store: PEM or PKCS12"
)
SSL_TRUSTSTORE_LOCATION: Final = optional_string(
    "ssl.truststore.location",
    scope=Scope.PER_BROKER,
    doc="file with the certificate authorities to trust",
)
SSL_TRUSTSTORE_CERTIFICATES: Final = secret(
    "ssl.truststore.certificates", scope=Scope.PER_BROKER, doc="certificate authorities in PEM, instead of a file"
)
SSL_TRUSTSTORE_PASSWORD: Final = secret(
    "ssl.truststore.password", scope=Scope.PER_BROKER, doc="password of a trust store in PKCS12"
)
SSL_ALLOW_DN_CHANGES: Final = flag(
    "ssl.allow.dn.changes",
    False,
    doc="whether a new certificate may have another subject",
)
SSL_ALLOW_SAN_CHANGES: Final = flag(
    "ssl.allow.san.changes", False, doc="whether a new certificate may have other alternative names"
)
SSL_PRINCIPAL_MAPPING_RULES: Final = string(
    "ssl.principal.mapping.rules", "DEFAULT", doc="rules that map the subjects of clients' certificates to users"
)
SSL_PROTOCOL: Final = string(
    "ssl.protocol", "TLSv1.3", scope=Scope.PER_BROKER, doc="TLSv1.3 or TLSv1.2; ssl.enabled.protocols decides"
)
SSL_PROVIDER: Final = optional_string(
    "ssl.provider", scope=Scope.PER_BROKER, doc="provider of TLS in Java; not supported"
)
SSL_KEYMANAGER_ALGORITHM: Final = string(
    "ssl.keymanager.algorithm", "SunX509", scope=Scope.PER_BROKER, doc="for Java; not supported"
)
SSL_TRUSTMANAGER_ALGORITHM: Final = string(
    "ssl.trustmanager.algorithm", "PKIX", scope=Scope.PER_BROKER, doc="for Java; not supported"
)
SSL_SECURE_RANDOM_IMPLEMENTATION: Final = optional_string(
    "ssl.secure.random.implementation", scope=Scope.PER_BROKER, doc="for Java; not supported"
)
SSL_ENGINE_FACTORY_CLASS: Final[Setting[str | None]] = Setting(
    name="ssl.engine.factory.class",
    kind=Kind.CLASS,
    default=None,
    scope=Scope.PER_BROKER,
    doc="for Java; not supported",
)
SSL_CLIENT_AUTH: Final = string(
    "ssl.client.auth",
    "none",
    scope=Scope.PER_BROKER,
    choices=("required", "requested", "none"),
    doc="whether clients must send a certificate",
)
SSL_ENABLED_PROTOCOLS: Final = words(
    "ssl.enabled.protocols",
    ("TLSv1.2", "TLSv1.3"),
    scope=Scope.PER_BROKER,
    choices=("TLSv1.2", "TLSv1.3"),
    doc="versions of TLS",
)
SSL_CIPHER_SUITES: Final = words(
    "ssl.cipher.suites", (), scope=Scope.PER_BROKER, doc="cipher suites for TLS 1.2, with OpenSSL's names"
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM: Final = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    scope=Scope.PER_BROKER,
    choices=("https", ""),
    doc="check of the host names in the certificates of other brokers; empty: no check",
)
SASL_ENABLED_MECHANISMS: Final = words(
    "sasl.enabled.mechanisms",
    ("GSSAPI",),
    doc="mechanisms of SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL: Final = optional_string(
    "sasl.oauthbearer.jwks.endpoint.url", doc="https: or file: URL of the keys that verify OAUTHBEARER tokens"
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL: Final = optional_string(
    "sasl.oauthbearer.token.endpoint.url", doc="file: URL of the token with which this broker logs in to other brokers"
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS: Final = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    least=1,
    doc="how often the keys of OAUTHBEARER are refreshed",
)
SASL_OAUTHBEARER_EXPECTED_ISSUER: Final = optional_string(
    "sasl.oauthbearer.expected.issuer", doc="issuer that tokens must have; default: any"
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE: Final = words(
    "sasl.oauthbearer.expected.audience", (), doc="audiences of which tokens must have one; default: any"
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS: Final = integer(
    "sasl.oauthbearer.clock.skew.seconds", 30, least=0, doc="allowed difference between the clocks of issuer and broker"
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME: Final = string(
    "sasl.oauthbearer.scope.claim.name", "scope", doc="claim with the scope of a token"
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME: Final = string(
    "sasl.oauthbearer.sub.claim.name", "sub", doc="claim with the user of a token"
)
SASL_SERVER_MAX_RECEIVE_SIZE: Final = integer(
    "sasl.server.max.receive.size", 512 * 1024, least=1, doc="largest request before a client has authenticated"
)
CONNECTIONS_MAX_REAUTH_MS: Final = long(
    "connections.max.reauth.ms", 0, least=0, doc="time after which a SASL client must re-authenticate; 0: never"
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS: Final = integer(
    "connection.failed.authentication.delay.ms", 100, least=0, doc="delay of the response to a failed authentication"
)
SUPER_USERS: Final = string(
    "super.users", "", doc="principals that may do everything, separated by semicolons: User:alice;User:bob"
)
ALLOW_EVERYONE_IF_NO_ACL_FOUND: Final = flag(
    "allow.everyone.if.no.acl.found", False, doc="whether every client may use a resource without ACLs"
)

# What the TLS context of a listener is made of. It can be replaced while the broker runs (KIP-226): these settings may
# change for one broker.
OF_CONTEXTS: Final[tuple[Setting[Any], ...]] = (
    *(SSL_KEYSTORE_TYPE, SSL_KEYSTORE_LOCATION, SSL_KEYSTORE_PASSWORD, SSL_KEYSTORE_KEY),
    *(SSL_KEYSTORE_CERTIFICATE_CHAIN, SSL_KEY_PASSWORD, SSL_TRUSTSTORE_TYPE, SSL_TRUSTSTORE_LOCATION),
    *(SSL_TRUSTSTORE_PASSWORD, SSL_TRUSTSTORE_CERTIFICATES),
    *(SSL_CLIENT_AUTH, SSL_ENABLED_PROTOCOLS, SSL_CIPHER_SUITES, SSL_ENDPOINT_IDENTIFICATION_ALGORITHM),
    *(SSL_PROTOCOL, SSL_PROVIDER, SSL_KEYMANAGER_ALGORITHM, SSL_TRUSTMANAGER_ALGORITHM),
    *(SSL_SECURE_RANDOM_IMPLEMENTATION, SSL_ENGINE_FACTORY_CLASS),
)
