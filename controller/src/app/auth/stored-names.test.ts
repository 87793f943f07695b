import { expect, test } from "vitest";
import { organizationKind } from "#access/organization/organization.ts";
import { tokenKind } from "#access/credential/credential.ts";
import type { StoredFormat } from "@holdfast/common/stored-names.ts";
import { authRequestKind } from "./auth-request.ts";
import { authKind } from "./auth.ts";

// Objects of existing installations have the stored form on the left.
// biome-ignore format: a table
test.each<[string, StoredFormat<object>, object, object]>([
  ["the creator of a token",           tokenKind,        { spec: { maker: { kind: "user" } } },   { spec: { creator: { kind: "user" } } }],
  ["the creator of an organization",   organizationKind, { spec: { maker: "anna" } },             { spec: { creator: "anna" } }],
  ["the kind of a request for a user", authRequestKind,  { spec: { what: "erase" } },             { spec: { kind: "erase" } }],
  ["the error of an app's mails",      authKind,         { status: { mailTrouble: "It is away" } }, { status: { mailError: "It is away" } }],
])("%s is stored under its former name", (_, kind, stored, object) => {
  expect(kind.parse(JSON.stringify(stored))).toEqual(object);
  expect(JSON.parse(kind.format(object))).toEqual(stored);
});
