import { deserialize, type Document, Int32, Long, ObjectId, serialize } from "bson";
import fc from "fast-check";
import { expect, test } from "vitest";
import { opMsg, type TestMessage } from "@holdfast/testing/servers/opmsg-message.ts";
import { withCorrectedErrors } from "./corrected-errors.ts";
import type { IndexReference, UniqueIndex } from "./duplicate-keys.ts";
import { readRequest } from "./request.ts";

const bodyOf = (document: Document) => Buffer.concat([Buffer.alloc(5), serialize(document)]);
const engine = (isReplica: boolean, found?: UniqueIndex, references: IndexReference[] = []) => ({
  isReplica: () => Promise.resolve(isReplica),
  index(reference: IndexReference) {
    references.push(reference);
    return Promise.resolve(found);
  },
});
const requestOf = (command: Document, options?: TestMessage) =>
  readRequest(opMsg({ ...command, $db: "shop" }, options));
const ping = requestOf({ ping: 1 });

async function corrected(document: Document, isReplica = false): Promise<Document> {
  return deserialize((await withCorrectedErrors(ping, bodyOf(document), engine(isReplica))).subarray(5));
}
const failure = (code: number, errmsg: string) => ({ ok: 0, errmsg, code, codeName: "Any" });
const writeFailure = (code: number, errmsg: string) => ({ ok: 1, n: 0, writeErrors: [{ index: 0, code, errmsg }] });

const readOnly = "Write operations cannot be performed because the server is currently operating in a read-only mode.";
const duplicate = "Duplicate key violation on the requested collection: Index 'email_1'";
const administrator = "terminating connection due to administrator command";
const crashed = "terminating connection due to crash of another server process";
const noSocket = "failed to connect to `user=x`: dial unix /run/.s.PGSQL.5432: connect: no such file or directory";
const recovering = "failed to connect: the database system is in recovery mode";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a deadlock",                       16_908_292, "deadlock detected",  112,    "WriteConflict",      "WriteConflict: deadlock detected"],
  ["a duplicate key",                  11_000,     duplicate,            11_000, "DuplicateKey",       `E11000 duplicate key error: ${duplicate}`],
  ["a session that the platform ends", 1,          administrator,        91,     "ShutdownInProgress", administrator],
  ["an engine that recovers",          1,          recovering,           91,     "ShutdownInProgress", recovering],
  ["an engine that crashed",           1,          crashed,              91,     "ShutdownInProgress", crashed],
  ["an engine that is down",           1,          noSocket,             91,     "ShutdownInProgress", noSocket],
  ["a broken session",                 1,          "unexpected EOF",     91,     "ShutdownInProgress", "unexpected EOF"],
  ["a document that grew too large",   285_999_133, "Size 18000034 is",  10_334, "BSONObjectTooLarge", "Size 18000034 is"],
  ["a full disk",                      10_107,     readOnly,             14_031, "OutOfDiskSpace",     "The disk of the service is full"],
])("%s has MongoDB's code, of a command and of a single write", async (_, before, message, code, codeName, text) => {
  const errmsg = expect.stringContaining(text) as string;
  expect(await corrected(failure(before, message))).toEqual({ ok: 0, errmsg, code, codeName });
  expect(await corrected(writeFailure(before, message))).toEqual({ ok: 1, n: 0, writeErrors: [{ index: 0, code, errmsg }] });
});

test("a write at an engine that became a replica has the code by which drivers look for the primary", async () => {
  expect(await corrected(failure(10_107, readOnly), true)).toEqual(failure(10_107, readOnly));
});

test("other errors of a bulk remain beside a corrected one, with their numbers' types", async () => {
  const writeErrors = [
    { index: 1, code: 2, errmsg: "bad" },
    { index: 2, code: 11_000, errmsg: duplicate },
  ];
  const body = await withCorrectedErrors(ping, bodyOf({ n: Long.fromNumber(7), writeErrors, ok: 1 }), engine(false));
  const document = deserialize(body.subarray(5), { promoteValues: false });
  expect(document["n"]).toBeInstanceOf(Long);
  const [first, second] = document["writeErrors"] as Document[];
  expect(first).toEqual({ index: new Int32(1), code: new Int32(2), errmsg: "bad" });
  expect(second?.["errmsg"]).toBe(`E11000 duplicate key error: ${duplicate}`);
});

test("responses without a corrected error are the same bytes, also with documents of users", async () => {
  const keys = fc.constantFrom("errmsg", "code", "writeErrors", "ok", "a");
  const values = fc.oneof(fc.constantFrom(duplicate, 11_000, 10_107, 0), fc.dictionary(keys, fc.string()));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.dictionary(keys, values)), async (firstBatch) => {
      const body = bodyOf({ cursor: { firstBatch, id: 0, ns: "d.c" }, ok: 1 });
      expect(await withCorrectedErrors(ping, body, engine(false))).toBe(body);
    }),
  );
  for (const document of [failure(2, "bad"), failure(1, "another failure"), { ok: 1, n: 1 }]) {
    const body = bodyOf(document);
    expect(await withCorrectedErrors(ping, body, engine(false))).toBe(body);
  }
});

test("text that is no UTF-8 in an error is passed on", async () => {
  const body = bodyOf(failure(11_000, "key \u00e9"));
  body[body.indexOf("\u00e9")] = 0xff;
  expect((await withCorrectedErrors(ping, body, engine(false))).includes("E11000")).toBe(true);
});

const email: UniqueIndex = { namespace: "shop.users", name: "email_1", key: { email: 1 } };
const nested: UniqueIndex = { namespace: "shop.users", name: "nested", key: { a: 1, "b.c": -1 } };
const users = (...documents: Document[]) => requestOf({ insert: "users", documents });
const changed = (change: Document) => requestOf({ update: "users", updates: [{ q: {}, u: {} }, change] });
const id = new ObjectId("0123456789abcdef01234567");

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, ReturnType<typeof requestOf>, UniqueIndex, Document | undefined, string]>([
  ["of an insert",            users({}, { email: "x" }),                                           email,  { email: "x" }, '{ email: "x" }'],
  ["that is absent",          users({}, { name: "x" }),                                            email,  { email: null }, "{ email: null }"],
  ["of several fields",       users({}, { a: 5, b: { c: id } }),                                   nested, { a: 5, "b.c": id }, `{ a: 5, b.c: {"$oid":"${id.toHexString()}"} }`],
  ["of an array",             users({}, { email: ["x", "y"] }),                                    email,  undefined, ""],
  ["of an array of objects",  users({}, { a: 5, b: [{ c: 1 }] }),                                  nested, undefined, ""],
  ["of an update",            changed({ q: { _id: 1 }, u: { $set: { email: "x" } } }),             email,  { email: "x" }, '{ email: "x" }'],
  ["of a replacement",        changed({ q: { _id: 1 }, u: { email: "x" } }),                       email,  { email: "x" }, '{ email: "x" }'],
  ["of an upsert",            changed({ q: { email: "x" }, u: { $inc: { n: 1 } }, upsert: true }), email,  { email: "x" }, '{ email: "x" }'],
  ["of a flat path",          changed({ q: { a: 5 }, u: { $set: { "b.c": 6 } } }),                 nested, { a: 5, "b.c": 6 }, "{ a: 5, b.c: 6 }"],
  ["that the update changes", changed({ q: { email: { $ne: "x" } }, u: { $inc: { n: 1 } } }),      email,  undefined, ""],
  ["of an update pipeline",   changed({ q: { _id: 1 }, u: [{ $set: { email: "x" } }] }),           email,  undefined, ""],
])("a duplicate key %s has its pattern, and its value if the request has it", async (_, request, index, keyValue, text) => {
  const errors = { ok: 1, writeErrors: [{ index: 1, code: 11_000, errmsg: duplicate }] };
  const body = await withCorrectedErrors(request, bodyOf(errors), engine(false, index));
  const errmsg = `E11000 duplicate key error collection: shop.users index: ${index.name}${text === "" ? "" : ` dup key: ${text}`}`;
  expect(deserialize(body.subarray(5))["writeErrors"]).toEqual([
    { index: 1, code: 11_000, errmsg, keyPattern: index.key, ...(keyValue && { keyValue }) },
  ]);
});

test("documents beside a command are found by their positions, and an index is read once", async () => {
  const documents = Array.from({ length: 3 }, (__, at) => ({ email: `${at}` }));
  const request = requestOf({ insert: "users" }, { sequences: [{ identifier: "documents", documents }] });
  const writeErrors = [0, 2].map((index) => ({ index, code: 11_000, errmsg: duplicate }));
  const references: IndexReference[] = [];
  const body = await withCorrectedErrors(request, bodyOf({ ok: 1, writeErrors }), engine(false, email, references));
  const errors = deserialize(body.subarray(5))["writeErrors"] as Document[];
  expect(errors.map((error) => error["keyValue"] as Document)).toEqual([{ email: "0" }, { email: "2" }]);
  expect(references).toEqual([{ database: "shop", collection: "users", name: "email_1" }]);
});

test("a conflict of a constraint is a duplicate key of its index", async () => {
  const references: IndexReference[] = [];
  const conflict = failure(1, 'conflicting key value violates exclusion constraint "documents_rum_index_17"');
  const request = requestOf({ findAndModify: "users", query: { _id: 2 }, update: { $set: { email: "x" } } });
  const body = await withCorrectedErrors(request, bodyOf(conflict), engine(false, email, references));
  expect(deserialize(body.subarray(5))).toMatchObject({
    ok: 0,
    code: 11_000,
    codeName: "DuplicateKey",
    keyPattern: { email: 1 },
    keyValue: { email: "x" },
  });
  expect(references).toEqual([{ id: 17 }]);
});

test("a unique index over duplicates is a duplicate key", async () => {
  const errmsg = 'could not create exclusion constraint "documents_rum_index_8"';
  const indexes = [
    { key: { j: 1 }, name: "j_1" },
    { key: { k: 1 }, name: "k_1", unique: true },
  ];
  const body = await withCorrectedErrors(
    requestOf({ createIndexes: "users", indexes }),
    bodyOf(failure(1, errmsg)),
    engine(false),
  );
  const text = "E11000 duplicate key error collection: shop.users index: k_1";
  expect(deserialize(body.subarray(5))).toEqual({
    ok: 0,
    errmsg: text,
    code: 11_000,
    codeName: "DuplicateKey",
    keyPattern: { k: 1 },
  });
});
