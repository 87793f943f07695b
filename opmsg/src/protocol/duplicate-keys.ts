import { lookUp } from "@holdfast/common/look-up.ts";
import { deserialize, type Document, EJSON } from "bson";
import { bsonTypes, type Field, fieldsNamed, fieldsOf, textOf } from "./fields.ts";
import type { Request } from "./request.ts";
import { writesOf } from "./writes.ts";

/** A unique index. */
export interface UniqueIndex {
  /** `database.collection`. */
  readonly namespace: string;
  readonly name: string;
  /** Paths of its fields with their directions. */
  readonly key: Document;
}

/** The name or number by which an error of the engine identifies an index. */
export type IndexReference =
  | { readonly database: string; readonly collection: string; readonly name: string }
  | { readonly id: number };

export interface DuplicateKey {
  readonly message: string;
  readonly keyPattern?: Document;
  readonly keyValue?: Document;
}

/** DocumentDB's own error, and those of the constraint below an index, by the index's number. */
const violation = /^Duplicate key violation on the requested collection: Index '(.*)'$/s;
const conflict = /^conflicting key value violates exclusion constraint "documents_rum_index_(\d{1,15})"$/;
const build = /^could not create exclusion constraint "documents_rum_index_\d{1,15}"/;
const internalError = 1;
const duplicateKey = 11_000;
const textLengthMax = 500;

/** True for an error of a duplicate key, whose code is not always that of MongoDB. */
export function isDuplicateKey(code: number, message: string): boolean {
  if (code === duplicateKey) return !message.startsWith("E11000");
  return code === internalError && (conflict.test(message) || build.test(message));
}

/**
 * The error in MongoDB's format, with the pattern of the index, and with the values if they are in the request.
 * `at`: position of the write in the command.
 */
export async function describeDuplicate(
  request: Request,
  message: string,
  at: number,
  indexOf: (reference: IndexReference) => Promise<UniqueIndex | undefined>,
): Promise<DuplicateKey> {
  const reference = build.test(message) ? undefined : referenceIn(request, message);
  const index = reference === undefined ? builtIndex(request) : await indexOf(reference);
  if (index === undefined) return { message: `E11000 duplicate key error: ${message}` };
  const { namespace, name, key } = index;
  const text = `E11000 duplicate key error collection: ${namespace} index: ${name}`;
  const values = reference === undefined ? undefined : valuesIn(request, at, Object.keys(key));
  if (values === undefined) return { message: text, keyPattern: key };
  const pairs = values.map(([path, value]) => `${path}: ${EJSON.stringify(value, { relaxed: true })}`);
  const listed = pairs.join(", ").slice(0, textLengthMax);
  return { message: `${text} dup key: { ${listed} }`, keyPattern: key, keyValue: Object.fromEntries(values) };
}

function referenceIn(request: Request, message: string): IndexReference | undefined {
  const id = conflict.exec(message)?.[1];
  if (id !== undefined) return { id: Number(id) };
  const name = violation.exec(message)?.[1];
  const namespace = namespaceOf(request);
  return name === undefined || namespace === undefined ? undefined : { ...namespace, name };
}

function namespaceOf({ fields }: Request): { database: string; collection: string } | undefined {
  const [first] = fields;
  const [database] = fieldsNamed(fields, "$db").map(textOf);
  const collection = first && textOf(first);
  return database === undefined || collection === undefined ? undefined : { database, collection };
}

/** The index whose build found duplicates, if the command creates one unique index. */
function builtIndex(request: Request): UniqueIndex | undefined {
  const namespace = namespaceOf(request);
  const indexes = fieldsNamed(request.fields, "indexes").flatMap(({ type, value }) =>
    type === bsonTypes.array ? documentsIn(value) : [],
  );
  const [unique, other] = indexes.map((each) => deserialize(each)).filter((each) => each["unique"] === true);
  if (namespace === undefined || unique === undefined || other !== undefined) return undefined;
  const { database, collection } = namespace;
  return { namespace: `${database}.${collection}`, name: String(unique["name"]), key: unique["key"] as Document };
}

/** Values of the paths in the write at this position; undefined if one depends on the document that it changes. */
function valuesIn(request: Request, at: number, paths: readonly string[]): [string, unknown][] | undefined {
  const values: [string, unknown][] = [];
  for (const path of paths) {
    const value = valueIn(request, at, path);
    if (value === undefined) return undefined;
    values.push([path, value]);
  }
  return values;
}

function valueIn(request: Request, at: number, path: string): unknown {
  const { command, fields } = request;
  if (command === "insert") {
    const document = writeAt(request, at);
    const found = document && scalarAt(document, path);
    return found === undefined || !found.isUnique ? undefined : (found.value ?? null);
  }
  const [write, query, update] =
    command === "update" ? [writeAt(request, at), "q", "u"] : [documentOf(fields), "query", "update"];
  const [condition, change] = [query, update].map((name) => write && (lookUp(write, name) as unknown));
  for (const source of sourcesOf(condition, change)) {
    const flat = lookUp(source, path) as unknown;
    const { value, isUnique } = flat === undefined ? scalarAt(source, path) : { value: flat, isUnique: true };
    if (value !== undefined && isUnique && !isOperator(value)) return value;
  }
  return undefined;
}

/** Documents that have values of the changed document: those of operators come before those of the condition. */
function sourcesOf(condition: unknown, change: unknown): Document[] {
  if (!isDocument(change)) return [];
  const { $set: set, $setOnInsert: onInsert } = change as { $set?: unknown; $setOnInsert?: unknown };
  return [set, onInsert, change, condition].filter(isDocument);
}

function isDocument(value: unknown): value is Document {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !("_bsontype" in value);
}

function isOperator(value: unknown): boolean {
  return isDocument(value) && Object.keys(value).some((name) => name.startsWith("$"));
}

/** An array has an entry of the index for each of its values. */
function scalarAt(document: Document, path: string): { readonly value: unknown; readonly isUnique: boolean } {
  let value: unknown = document;
  for (const name of path.split(".")) {
    if (Array.isArray(value)) return { value: undefined, isUnique: false };
    value = isDocument(value) && Object.hasOwn(value, name) ? (value[name] as unknown) : undefined;
  }
  return { value, isUnique: !Array.isArray(value) };
}

/** The write at this position of the command. */
function writeAt(request: Request, at: number): Document | undefined {
  const bytes = writesOf(request).drop(at).next().value;
  return bytes && deserialize(bytes, readOptions);
}

function documentOf(fields: readonly Field[]): Document {
  const named = fields.filter(({ type, name }) => type === bsonTypes.document && ["query", "update"].includes(name));
  return Object.fromEntries(named.map(({ name, value }) => [name, deserialize(value, readOptions)]));
}

/** Numbers keep their types. */
const readOptions = { promoteValues: false, bsonRegExp: true, validation: { utf8: false } } as const;

function documentsIn(array: Buffer): Buffer[] {
  return fieldsOf(array).map(({ value }) => value);
}
