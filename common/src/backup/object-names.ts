/** Keys of a service's backups and logs in the object store. Nobody makes or takes them apart elsewhere. */
export interface BackupPlace {
  readonly service: string;
  readonly backup: string;
  /** From 1 on: each attempt has objects of its own. */
  readonly attempt: number;
}

export interface LogPlace {
  readonly service: string;
  readonly term: number;
}

/** Everything of a service is below it. */
export const servicePrefix = (service: string): string => `${servicesPrefix}${service}/`;

/** Where every service is below. */
export const servicesPrefix = "services/";

/** The key that wraps others, sealed under the installation's master key. */
export const keyObject = (service: string, version: number): string => `${servicePrefix(service)}keys/${version}`;

/** The keys that wrap others, by version. */
export const keysPrefix = (service: string): string => `${servicePrefix(service)}keys/`;

/** A data key of the log, wrapped. */
export const logKeyObject = (service: string, keyId: string): string => `${logKeysPrefix(service)}${keyId}`;

export const logKeysPrefix = (service: string): string => `${servicePrefix(service)}log-keys/`;

/** What a service is; the one that sorts last is the newest. */
export const descriptorsPrefix = (service: string): string => `${servicePrefix(service)}descriptors/`;

/** Numbers go on through all terms, from 1 on. */
export const descriptorObject = (service: string, term: number, number: number): string =>
  `${descriptorsPrefix(service)}${termText(term)}/${String(number).padStart(12, "0")}`;

/** Everything of a backup is below it, whichever attempt made it. */
export const backupPrefix = (service: string, backup: string): string => `${servicePrefix(service)}backups/${backup}/`;

export const attemptPrefix = ({ service, backup, attempt }: BackupPlace): string =>
  `${backupPrefix(service, backup)}${attempt}/`;

export const manifestObject = (place: BackupPlace): string => `${attemptPrefix(place)}manifest`;

/** Parts of a stream count from 1 on. */
export const partObject = (place: BackupPlace, stream: string, part: number): string =>
  `${attemptPrefix(place)}${stream}/${partText(part)}`;

/** The number of a part within its stream; undefined for any other object. */
export function partNumber(object: string): number | undefined {
  const [, number] = /\/(\d{6})$/.exec(object) ?? [];
  return number === undefined ? undefined : Number(number);
}

/** A part and those that come after it in its stream, by the same attempt, whether they are there or not. */
export function partsFrom(object: string, count: number): string[] {
  const first = partNumber(object);
  if (first === undefined) throw new Error(`${object} is no part of a backup`);
  const stream = object.slice(0, -partDigits);
  return Array.from({ length: count }, (_, index) => `${stream}${partText(first + index)}`);
}

/** Is it a part of this stream, by this attempt or one before it? A later one takes over what is stored already. */
export function isPartOf({ service, backup, attempt }: BackupPlace, stream: string, object: string): boolean {
  const prefix = backupPrefix(service, backup);
  const [by = "", of, number, ...rest] = object.startsWith(prefix) ? object.slice(prefix.length).split("/") : [];
  if (of !== stream || rest.length > 0 || !/^\d{6}$/.test(number ?? "") || !/^[1-9]\d*$/.test(by)) return false;
  return Number(by) <= attempt;
}

/** The log of one term; terms sort as they follow each other. */
export const logPrefix = ({ service, term }: LogPlace): string => `${logsPrefix(service)}${termText(term)}/`;

/** The logs of all terms. */
export const logsPrefix = (service: string): string => `${servicePrefix(service)}log/`;

/** Sequence numbers count from 1 on in each term. */
export const logObject = (place: LogPlace, sequence: number): string =>
  `${logPrefix(place)}${String(sequence).padStart(12, "0")}`;

const partDigits = 6;

function partText(part: number): string {
  return String(part).padStart(partDigits, "0");
}

/** Terms sort as they follow each other. */
function termText(term: number): string {
  return String(term).padStart(10, "0");
}
