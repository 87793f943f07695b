import { deserialize, type Document, Int32, Long, serialize } from "bson";
import fc from "fast-check";
import { expect, test } from "vitest";
import { withCorrectedErrors } from "./corrected-errors.ts";

const bodyOf = (document: Document) => Buffer.concat([Buffer.alloc(5), serialize(document)]);
const engine = (isReplica: boolean) => ({ isReplica: () => Promise.resolve(isReplica) });

async function corrected(document: Document, isReplica = false): Promise<Document> {
  return deserialize((await withCorrectedErrors(bodyOf(document), engine(isReplica))).subarray(5));
}
const failure = (code: number, errmsg: string) => ({ ok: 0, errmsg, code, codeName: "Any" });
const writeFailure = (code: number, errmsg: string) => ({ ok: 1, n: 0, writeErrors: [{ index: 0, code, errmsg }] });

const readOnly = "Write operations cannot be performed because the server is currently operating in a read-only mode.";
const duplicate = "Duplicate key violation on the requested collection: Index 'email_1'";
const administrator = "terminating connection due to administrator command";
const recovering = "failed to connect: the database system is in recovery mode";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a deadlock",                       16_908_292, "deadlock detected",  112,    "WriteConflict",      "WriteConflict: deadlock detected"],
  ["a duplicate key",                  11_000,     duplicate,            11_000, "DuplicateKey",       `E11000 duplicate key error: ${duplicate}`],
  ["a session that the platform ends", 1,          administrator,        91,     "ShutdownInProgress", administrator],
  ["an engine that recovers",          1,          recovering,           91,     "ShutdownInProgress", recovering],
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
  const body = await withCorrectedErrors(bodyOf({ n: Long.fromNumber(7), writeErrors, ok: 1 }), engine(false));
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
      expect(await withCorrectedErrors(body, engine(false))).toBe(body);
    }),
  );
  for (const document of [failure(2, "bad"), failure(1, "another failure"), { ok: 1, n: 1 }]) {
    const body = bodyOf(document);
    expect(await withCorrectedErrors(body, engine(false))).toBe(body);
  }
});

test("text that is no UTF-8 in an error is passed on", async () => {
  const body = bodyOf(failure(11_000, "key \u00e9"));
  body[body.indexOf("\u00e9")] = 0xff;
  expect((await withCorrectedErrors(body, engine(false))).includes("E11000")).toBe(true);
});
