import { opMsg, saslStart } from "@holdfast/testing/servers/opmsg-message.ts";
import type { Document } from "bson";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Access } from "./commands.ts";
import { readRequest } from "./protocol/request.ts";
import { refusalOf } from "./refusal.ts";
import { signInOf } from "./session/user-name.ts";

const codeOf = (command: Document, access: Access | undefined, isReplica = false) =>
  refusalOf(readRequest(opMsg(command)), access && { access, isReplica })?.code;
const reader = { access: "readonly", isReplica: false } as const;
const pipeline = (stage: Document) => ({ aggregate: "c", pipeline: [{ $match: {} }, stage], cursor: {} });
const [unauthorized, notFound, illegal] = [13, 59, 20];

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Document, unauthenticated: number | undefined, readonly: number | undefined, readwrite: number | undefined]>([
  ["a greeting",                         { hello: 1 },                                      undefined,    undefined,    undefined],
  ["ping",                               { ping: 1 },                                       undefined,    undefined,    undefined],
  ["ping in a session",                  { ping: 1, lsid: { id: 1 } },                      unauthorized, undefined,    undefined],
  ["a find",                             { find: "c" },                                     unauthorized, undefined,    undefined],
  ["an insert",                          { insert: "c", documents: [{}] },                  unauthorized, unauthorized, undefined],
  ["an aggregation",                     pipeline({ $sort: { a: 1 } }),                     unauthorized, undefined,    undefined],
  ["an aggregation that writes by $out", pipeline({ $out: "d" }),                           unauthorized, unauthorized, undefined],
  ["one that writes by $merge",          pipeline({ $merge: { into: "d" } }),               unauthorized, unauthorized, undefined],
  ["the same, explained",                { explain: pipeline({ $out: "d" }) },              unauthorized, unauthorized, undefined],
  ["a change stream",                    pipeline({ $changeStream: {} }),                   unauthorized, 40_573,       40_573],
  ["a change stream, explained",         { explain: pipeline({ $changeStream: {} }) },      unauthorized, 40_573,       40_573],
  ["the start of a transaction",         { insert: "c", txnNumber: 1, autocommit: false, startTransaction: true }, unauthorized, illegal, illegal],
  ["a retryable write",                  { insert: "c", txnNumber: 1 },                     unauthorized, illegal,      illegal],
  ["the end of a transaction",           { commitTransaction: 1 },                          unauthorized, illegal,      illegal],
  ["createUser",                         { createUser: "u", pwd: "p", roles: [] },          unauthorized, unauthorized, unauthorized],
  ["usersInfo",                          { usersInfo: 1 },                                  unauthorized, unauthorized, unauthorized],
  ["a command of the machine",           { getCmdLineOpts: 1 },                             unauthorized, notFound,     notFound],
  ["a debug command",                    { ferretDebugError: 1 },                           unauthorized, notFound,     notFound],
  ["an unknown command",                 { noSuchCommand: 1 },                              unauthorized, notFound,     notFound],
  ["another spelling",                   { INSERT: "c" },                                   unauthorized, notFound,     notFound],
])("%s", (_, command, unauthenticated, readonly, readwrite) => {
  expect([codeOf(command, undefined), codeOf(command, "readonly"), codeOf(command, "readwrite")]).toEqual([
    unauthenticated, readonly, readwrite,
  ]);
});

test("no other field of a command lets it pass: a reader neither writes nor manages users, and nobody uses transactions", () => {
  const writes = fc.constantFrom(
    "insert",
    "update",
    "delete",
    "findAndModify",
    "drop",
    "dropDatabase",
    "createIndexes",
  );
  const users = fc.constantFrom("createUser", "updateUser", "dropUser", "grantRolesToUser", "dropAllUsersFromDatabase");
  const more = fc.dictionary(fc.stringMatching(/^[a-z$]{1,8}$/), fc.anything({ maxDepth: 1, values: [fc.string()] }));
  fc.assert(
    fc.property(writes, users, more, (write, user, others) => {
      const rest = JSON.parse(JSON.stringify(others)) as Document;
      expect(codeOf({ [write]: "c", ...rest }, "readonly")).toBeDefined();
      expect(codeOf({ [user]: "c", ...rest }, "readwrite")).toBe(unauthorized);
      expect(codeOf({ find: "c", ...rest, txnNumber: 1 }, "readwrite")).toBe(illegal);
    }),
  );
});

test("a write at a replica has the code by which drivers look for the primary, and a read is forwarded", () => {
  const writes = [
    { insert: "c", documents: [{}] },
    { findAndModify: "c" },
    { createIndexes: "c" },
    pipeline({ $out: "d" }),
    { explain: pipeline({ $merge: { into: "d" } }) },
  ];
  expect(writes.map((write) => codeOf(write, "readwrite", true))).toEqual(writes.map(() => 10_107));
  expect(writes.map((write) => codeOf(write, "readonly", true))).toEqual(writes.map(() => unauthorized));
  for (const read of [{ find: "c" }, { hello: 1 }, pipeline({ $sort: { a: 1 } })])
    expect(codeOf(read, "readwrite", true)).toBeUndefined();
});

test("a document sequence that the command does not have ends the connection", () => {
  const message = (command: string, identifier: string) =>
    readRequest(opMsg({ [command]: "c" }, { sequences: [{ identifier, documents: [{ $out: "d" }] }] }));
  expect(() => refusalOf(message("aggregate", "pipeline"), reader)).toThrow(/no such document sequence/);
  expect(() => refusalOf(message("hello", "documents"), undefined)).toThrow(/no such document sequence/);
  expect(refusalOf(message("insert", "documents"), { ...reader, access: "readwrite" })).toBeUndefined();
});

test("a command that does not exist is refused by its code, also with its document sequences", () => {
  const bulk = opMsg({ bulkWrite: 1 }, { sequences: [{ identifier: "ops", documents: [{}] }] });
  expect(refusalOf(readRequest(bulk), reader)?.code).toBe(notFound);
  expect(refusalOf(readRequest(bulk), undefined)?.code).toBe(unauthorized);
});

const [notSupported, badValue] = [115, 2];

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Document, code: number | undefined]>([
  ["a collection",                          { create: "c" },                                                  undefined],
  ["a collection of mongorestore",          { create: "c", idIndex: { key: { _id: 1 } }, writeConcern: { w: "majority" } }, undefined],
  ["a collection with default options",     { create: "c", capped: false, collation: { locale: "simple" }, validator: {} }, undefined],
  ["a view",                                { create: "v", viewOn: "c", pipeline: [] },                       notSupported],
  ["a validator",                           { create: "c", validator: { a: { $gt: 1 } } },                    notSupported],
  ["a capped collection",                   { create: "c", capped: true, size: 100 },                         notSupported],
  ["a collation",                           { create: "c", collation: { locale: "en", strength: 2 } },        notSupported],
  ["a time series",                         { create: "c", timeseries: { timeField: "t" } },                  notSupported],
  ["an option of a newer release",          { create: "c", clusteredIndex: {} },                              notSupported],
  ["a changed validator",                   { collMod: "c", validator: { a: 1 } },                            notSupported],
  ["a changed view",                        { collMod: "c", viewOn: "d", pipeline: [] },                      notSupported],
  ["a changed index",                       { collMod: "c", index: { name: "a", expireAfterSeconds: 5 } },    undefined],
  ["a write for one member",                { insert: "c", documents: [{}], writeConcern: { w: 1, j: true } }, undefined],
  ["a write without a response",            { insert: "c", documents: [{}], writeConcern: { w: 0 } },         undefined],
  ["a write for two members",               { insert: "c", documents: [{}], writeConcern: { w: 2 } },         badValue],
  ["a write for a fraction of members",     { insert: "c", documents: [{}], writeConcern: { w: 1.5 } },       badValue],
  ["a write for tagged members",            { delete: "c", deletes: [], writeConcern: { w: "dc2" } },         badValue],
  ["a write for members by their tags",     { update: "c", updates: [], writeConcern: { w: { dc: 1 } } },     badValue],
  ["$out for two members",                  { ...pipeline({ $out: "d" }), writeConcern: { w: 3 } },           badValue],
  ["a time by the hour",                    pipeline({ $set: { d: { $dateTrunc: { date: "$d", unit: "hour" } } } }), undefined],
  ["a date by the day",                     pipeline({ $set: { d: { $dateTrunc: { date: "$d", unit: "day" } } } }), notSupported],
  ["a date by a computed unit",             pipeline({ $group: { _id: { $dateTrunc: { date: "$d", unit: "$u" } } } }), notSupported],
  ["a date in a filter",                    { find: "c", filter: { $expr: { $dateTrunc: { unit: "week" } } } }, notSupported],
  ["an inserted field of that name",        { insert: "c", documents: [{ $dateTrunc: { unit: "day" } }] },    undefined],
  ["documents of a pipeline that are merged", { aggregate: 1, pipeline: [{ $documents: [{ _id: 1 }] }, { $merge: { into: "t" } }] }, notSupported],
  ["documents of a pipeline",               { aggregate: 1, pipeline: [{ $documents: [{ _id: 1 }] }] },       undefined],
  ["an update in an order",                 { update: "c", updates: [{ q: {}, u: { $set: { a: 1 } }, sort: { a: 1 } }] }, 40_415],
  ["an update of a field of that name",     { update: "c", updates: [{ q: {}, u: { $set: { sort: { a: 1 } } } }] }, undefined],
  ["a text with that name",                 { find: "c", filter: { a: "$dateTrunc" } },                       undefined],
])("%s is refused if the engine would do something else", (_, command, code) => {
  expect(codeOf(command, "readwrite")).toBe(code);
});

test("a wrong date in an update, also in its document sequence, is refused", () => {
  const update = { q: {}, u: [{ $set: { d: { $dateTrunc: { date: "$d", unit: "month" } } } }] };
  const message = opMsg({ update: "c" }, { sequences: [{ identifier: "updates", documents: [update] }] });
  expect(refusalOf(readRequest(message), { ...reader, access: "readwrite" })?.code).toBe(notSupported);
});

test("an order in the second update of a document sequence is refused", () => {
  const updates = [
    { q: {}, u: { $set: { a: 1 } } },
    { q: {}, u: { $set: { a: 1 } }, sort: { a: -1 } },
  ];
  const message = opMsg({ update: "c" }, { sequences: [{ identifier: "updates", documents: updates }] });
  expect(refusalOf(readRequest(message), { ...reader, access: "readwrite" })?.code).toBe(40_415);
});

const userOf = (command: Document) => signInOf(readRequest(opMsg(command)));

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Document, ReturnType<typeof signInOf>]>([
  ["a sign-in",                               saslStart("app_user"),                                               { user: "app_user" }],
  ["a greeting with a sign-in",               { hello: 1, speculativeAuthenticate: { ...saslStart("app_user"), db: "admin" } }, { user: "app_user" }],
  ["a greeting",                              { hello: 1 },                                                        undefined],
  ["another command with a sign-in in it",    { find: "c", speculativeAuthenticate: saslStart("app_user") },       undefined],
  ["another mechanism",                       { ...saslStart("app_user"), mechanism: "PLAIN" },                    { user: undefined }],
  ["a greeting whose sign-in is no document", { hello: 1, speculativeAuthenticate: 1 },                            { user: undefined }],
  ["an authorization id",                     { ...saslStart("u"), payload: Buffer.from("n,a=root,n=u,r=0123456789abcdef") }, { user: undefined }],
  ["a second name",                           { ...saslStart("u"), payload: Buffer.from("n,,n=u,r=0123456789abcdef,n=root") }, { user: undefined }],
  ["an encoded name",                         saslStart("a=2Cb"),                                                  { user: undefined }],
  ["no payload",                              { saslStart: 1, mechanism: "SCRAM-SHA-256" },                        { user: undefined }],
])("the user of %s", (_, command, expected) => {
  expect(userOf(command)).toEqual(expected);
});
