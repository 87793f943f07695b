/**
 * Position in the binary log of a service: term of the primary, number of its file, and offset in the file, such as
 * `3/12/4567`. Positions of one server are ordered by file and offset, those of its successors by term.
 */
export interface BinlogPosition {
  readonly term: number;
  readonly file: number;
  readonly offset: number;
}

/** File of one server, which is a branch of the log, such as `3e11fa47-71ca-11e1-9e33-c80aa9429562:12`. */
export interface BinlogBranch {
  readonly server: string;
  readonly file: number;
}

/** Usual size of a file that is not the last one, in bytes: the fixed setting `max_binlog_size`. */
export const binlogFileBytes = 67_108_864;

export function parsePosition(text: string): BinlogPosition {
  const found = /^(\d{1,15})\/(\d{1,10})\/(\d{1,15})$/.exec(text);
  if (found === null) throw new Error(`${text} is not a position in a binary log`);
  return { term: Number(found[1]), file: Number(found[2]), offset: Number(found[3]) };
}

export const formatPosition = ({ term, file, offset }: BinlogPosition): string => `${term}/${file}/${offset}`;

export function parseBranch(text: string): BinlogBranch {
  const found = /^([0-9a-f-]{36}):(\d{1,10})$/.exec(text);
  if (found === null) throw new Error(`${text} is not a file of a binary log`);
  return { server: found[1] ?? "", file: Number(found[2]) };
}

export const formatBranch = ({ server, file }: BinlogBranch): string => `${server}:${file}`;

/** Name of a file in the data directory, such as `binlog.000012`. */
export const binlogName = (file: number): string => `binlog.${String(file).padStart(6, "0")}`;

export function fileNumber(name: string): number {
  const found = /^binlog\.(\d{6,10})$/.exec(name);
  if (found === null) throw new Error(`${name} is not a binary log of this engine`);
  return Number(found[1]);
}

/** Bytes from one position to another: exact in a file, otherwise an estimate. Negative if the second one is first. */
export function distance(from: string, to: string): number {
  const [a, b] = [parsePosition(from), parsePosition(to)];
  if (a.term === b.term && a.file === b.file) return b.offset - a.offset;
  return isBefore(a, b) ? bytesBetween(a, b) : -bytesBetween(b, a);
}

const isBefore = (a: BinlogPosition, b: BinlogPosition): boolean =>
  a.term === b.term ? a.file < b.file : a.term < b.term;

function bytesBetween(a: BinlogPosition, b: BinlogPosition): number {
  const filesBetween = a.term === b.term ? b.file - a.file - 1 : 0;
  return Math.max(1, filesBetween * binlogFileBytes + b.offset);
}
