import { integer, list, type Setting, text, type ValuesOf } from "@holdfast/common/config.ts";
import { type DataPlaneName, dataPlaneNames, identityDirectorySetting } from "@holdfast/common/data-planes.ts";

type IdentityDirectories = Record<`${DataPlaneName}IdentityDir`, Setting<string>>;

/** One setting for each data plane that may run on the controller's host. */
const identityDirectories = Object.fromEntries(
  dataPlaneNames.map((name) => [
    `${name}IdentityDir`,
    text(
      identityDirectorySetting(name),
      `Directory to write the identity of the process \`${name}\` to; empty for none`,
      "",
    ),
  ]),
) as IdentityDirectories;

/** The settings of every controller, independent of its systems. */
export const kernelSettings = {
  installationId: text("HOLDFAST_INSTALLATION_ID", "Id of the installation; it is in every certificate"),
  controllerId: text("HOLDFAST_CONTROLLER_ID", "Id of this controller; empty for a random one", ""),
  etcd: list("HOLDFAST_ETCD", "URLs of the etcd members", "http://127.0.0.1:2379"),
  etcdCa: text("HOLDFAST_ETCD_CA", "File with the authority of etcd's certificates; empty for plain HTTP", ""),
  etcdCert: text("HOLDFAST_ETCD_CERT", "File with the client certificate for etcd", ""),
  etcdKey: text("HOLDFAST_ETCD_KEY", "File with the key of the client certificate for etcd", ""),
  etcdQuota: integer(
    "HOLDFAST_ETCD_QUOTA_BYTES",
    "Bytes that etcd may use, the same as its --quota-backend-bytes; above 80% users can only delete",
    2 ** 31,
  ),
  writtenBytes: integer(
    "HOLDFAST_RATE_BYTES",
    "Bytes per hour that a credential may write to etcd; all credentials of an organization together may write three times as many; 0 for no limit",
    2 ** 26,
  ),
  historyUrl: text("HOLDFAST_HISTORY_URL", "URL of the PostgreSQL database for events and audit, without a password"),
  historyPasswordFile: text("HOLDFAST_HISTORY_PASSWORD_FILE", "File with the password of the history database"),
  historyCa: text(
    "HOLDFAST_HISTORY_CA",
    "File with the authority of the history database's certificate; empty for none",
    "",
  ),
  historyQuota: integer(
    "HOLDFAST_HISTORY_QUOTA_BYTES",
    "Bytes that the history database may use on disk; above 80% users can only delete",
    2 ** 36,
  ),
  masterKeyFile: text("HOLDFAST_MASTER_KEY_FILE", "File with the key-encryption keys of the installation"),
  objects: text(
    "HOLDFAST_OBJECTS",
    "Store of payloads, snapshots and backups: file:// URL of a directory, or s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION",
  ),
  objectsKeyFile: text(
    "HOLDFAST_OBJECTS_KEY_FILE",
    "File with the credential of an S3 store, JSON with id and secret, or with the secret that is shared with the process that serves a directory",
    "",
  ),
  objectsEndpoint: text(
    "HOLDFAST_OBJECTS_ENDPOINT",
    "host:port at which machines reach the process that serves a directory; empty: no backups",
    "",
  ),
  objectsCa: text(
    "HOLDFAST_OBJECTS_CA",
    "File with the authorities of an S3 store's certificate; empty for the public authorities",
    "",
  ),
  objectsEncryption: text(
    "HOLDFAST_OBJECTS_ENCRYPTION",
    "Additional server-side encryption of an S3 store: AES256, or none for a store without encryption keys",
    "AES256",
  ),
  leaseS: integer(
    "HOLDFAST_CONTROLLER_LEASE_S",
    "Seconds without a renewed lease after which another controller takes over the work of a controller",
    5,
  ),
  machineCertificateS: integer(
    "HOLDFAST_MACHINE_CERTIFICATE_S",
    "Lifetime of a machine's certificates in seconds",
    30 * 86_400,
  ),
  caFile: text("HOLDFAST_CA_FILE", "File to write the trusted authorities to; empty for none", ""),
  ...identityDirectories,
} as const;

export type KernelSettings = ValuesOf<typeof kernelSettings>;
