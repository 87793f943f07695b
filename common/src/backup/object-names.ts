/**
 * Keys of a service's backups and logs in the object store. Only this file builds and parses them;
 * docs/reference/backup-format.md lists them.
 */
export interface BackupLocation {
  readonly service: string;
  readonly backup: string;
  /** Number of the attempt, from 1 on; each attempt has its own objects. */
  readonly attempt: number;
}

export interface LogLocation {
  readonly service: string;
  readonly term: number;
}

/** Prefix of all objects of a service. */
export const servicePrefix = (service: string): string => `${servicesPrefix}${service}/`;

/** Prefix of all services. */
export const servicesPrefix = "services/";

/** Key-encryption key of a service, sealed under the installation's master key. */
export const keyObject = (service: string, version: number): string => `${servicePrefix(service)}keys/${version}`;

/** Prefix of the key-encryption keys, by version. */
export const keysPrefix = (service: string): string => `${servicePrefix(service)}keys/`;

/** A data key of the log, encrypted with the key-encryption key. */
export const logKeyObject = (service: string, keyId: string): string => `${logKeysPrefix(service)}${keyId}`;

export const logKeysPrefix = (service: string): string => `${servicePrefix(service)}log-keys/`;

/** Prefix of the service's descriptors; the last one in key order is the newest. */
export const descriptorsPrefix = (service: string): string => `${servicePrefix(service)}descriptors/`;

/** Key of a descriptor; numbers continue across terms, from 1 on. */
export const descriptorObject = (service: string, term: number, number: number): string =>
  `${descriptorsPrefix(service)}${termText(term)}/${String(number).padStart(12, "0")}`;

/** Prefix of all objects of a backup, over all attempts. */
export const backupPrefix = (service: string, backup: string): string => `${servicePrefix(service)}backups/${backup}/`;

export const attemptPrefix = ({ service, backup, attempt }: BackupLocation): string =>
  `${backupPrefix(service, backup)}${attempt}/`;

export const manifestObject = (location: BackupLocation): string => `${attemptPrefix(location)}manifest`;

/** Key of a part, such as `.../base.tar/000001`; parts of a stream are numbered from 1 on. */
export const partObject = (location: BackupLocation, stream: string, part: number): string =>
  `${attemptPrefix(location)}${stream}/${partText(part)}`;

/** Number of a part within its stream; undefined for other objects. */
export function partNumber(object: string): number | undefined {
  const [, number] = /\/(\d{6})$/.exec(object) ?? [];
  return number === undefined ? undefined : Number(number);
}

/** Keys of `count` consecutive parts of the same stream and attempt, whether they exist or not. */
export function partsFrom(object: string, count: number): string[] {
  const first = partNumber(object);
  if (first === undefined) throw new Error(`${object} is not a part of a backup`);
  const stream = object.slice(0, -partDigits);
  return Array.from({ length: count }, (_, index) => `${stream}${partText(first + index)}`);
}

/** True if the object is a part of this stream by this attempt or an earlier one, whose parts it reuses. */
export function isPartOf({ service, backup, attempt }: BackupLocation, stream: string, object: string): boolean {
  const prefix = backupPrefix(service, backup);
  const [attemptText = "", streamName, number, ...rest] = object.startsWith(prefix)
    ? object.slice(prefix.length).split("/")
    : [];
  if (streamName !== stream || rest.length > 0 || !/^\d{6}$/.test(number ?? "") || !/^[1-9]\d*$/.test(attemptText))
    return false;
  return Number(attemptText) <= attempt;
}

/** Prefix of the log of one term; terms sort in numeric order. */
export const logPrefix = ({ service, term }: LogLocation): string => `${logsPrefix(service)}${termText(term)}/`;

/** Prefix of the logs of all terms. */
export const logsPrefix = (service: string): string => `${servicePrefix(service)}log/`;

/** Key of a log object; sequence numbers start at 1 in each term. */
export const logObject = (location: LogLocation, sequence: number): string =>
  `${logPrefix(location)}${String(sequence).padStart(12, "0")}`;

/** An object of a service's log or of one of its backups. */
export type DataObject =
  | { readonly kind: "log"; readonly term: number; readonly sequence: number }
  | { readonly kind: "backup"; readonly backup: string };

/** The log object or backup of a service that a key belongs to; undefined for any other key. */
export function dataObjectOf(service: string, key: string): DataObject | undefined {
  if (!key.startsWith(servicePrefix(service))) return undefined;
  const [, term, sequence] = /^log\/(\d{10})\/(\d{12})$/.exec(key.slice(servicePrefix(service).length)) ?? [];
  if (term !== undefined && sequence !== undefined)
    return { kind: "log", term: Number(term), sequence: Number(sequence) };
  const [, backup] = /^backups\/([^/]+)\/./.exec(key.slice(servicePrefix(service).length)) ?? [];
  return backup === undefined ? undefined : { kind: "backup", backup };
}

const partDigits = 6;

function partText(part: number): string {
  return String(part).padStart(partDigits, "0");
}

/** Pads a term so that terms sort in numeric order. */
function termText(term: number): string {
  return String(term).padStart(10, "0");
}
