import { expect, test } from "vitest";
import type { ApiDocument } from "./document.ts";
import { curlOf, entryLabel, operationsOf, operationsOn, requestOf, tableOf } from "./generic-view.ts";

const list = {
  type: "object",
  properties: { notes: { type: "array", items: { $ref: "#/components/schemas/Note" } }, next_cursor: {} },
};
const base = { summary: "S", description: "About it.\n\nNeeds the scope `notes:write`.", tags: ["Note"] };
const document: ApiDocument = {
  components: { schemas: { Note: { type: "object", properties: { id: { type: "string" } } }, List: list } },
  paths: {
    "/notes": {
      get: {
        ...base,
        operationId: "listNotes",
        parameters: [{ name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 9 } }],
        responses: { "200": { content: { "application/json": { schema: { $ref: "#/components/schemas/List" } } } } },
      },
    },
    "/notes/{id}/send": {
      post: {
        ...base,
        operationId: "sendNote",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
        requestBody: {
          content: {
            "application/json": {
              schema: {
                type: "object",
                required: ["to"],
                properties: {
                  to: { type: "array", items: { type: "string" } },
                  password: { type: "string" },
                  tags: { type: "object" },
                  copies: { type: ["integer", "null"] },
                },
              },
            },
          },
        },
        responses: { "204": {} },
      },
    },
  },
};
const operations = operationsOf(document);
const [listNotes, sendNote] = operations;
if (listNotes === undefined || sendNote === undefined) throw new Error("the document has two operations");

test("an operation has its scope, its list and its form", () => {
  expect(listNotes).toMatchObject({ list: "notes", scopes: ["notes:write"], about: "About it." });
  expect(listNotes.fields).toMatchObject([{ kind: "number", help: "1 to 9.", required: false }]);
  expect(sendNote.fields.map(({ name, kind, required }) => [name, kind, required])).toEqual([
    ["id", "text", true],
    ["to", "lines", true],
    ["password", "secret", false],
    ["tags", "json", false],
    ["copies", "number", false],
  ]);
});

test("a form becomes a request, and a text that is not a value is a fault of its field", () => {
  const input = {
    "path id": "a/b",
    "body to": "x\n\ny",
    "body tags": '{"a":1}',
    "body copies": "2",
    "body password": "p",
  };
  const request = requestOf(sendNote, input);
  expect(request).toMatchObject({ path: "/notes/a%2Fb/send", faults: {} });
  expect(request.body).toEqual({ to: ["x", "y"], tags: { a: 1 }, copies: 2, password: "p" });
  expect(curlOf(sendNote, request, "https://h")).not.toContain('"p"');
  const { faults } = requestOf(sendNote, { "path id": "..", "body tags": "{", "body copies": "two" });
  expect(Object.keys(faults)).toEqual(["path id", "body tags", "body copies"]);
});

test("a list is a table, and its entries have the operations on them", () => {
  const table = tableOf("notes", {
    notes: [
      { note: "n", id: "1", more: {} },
      { id: "2", note: null },
    ],
  });
  expect(table.columns).toEqual(["id", "note"]);
  expect(table.rows).toEqual([
    ["1", "n"],
    ["2", ""],
  ]);
  expect(tableOf("notes", "no object").rows).toEqual([]);
  expect(operationsOn(operations, listNotes, { id: "1" })).toEqual([
    { operation: sendNote, variable: "id", value: "1" },
  ]);
});

test.each([
  ["GET", "/notes/{id}", "Open"],
  ["PATCH", "/notes/{id}", "Change"],
  ["DELETE", "/notes/{id}", "Delete"],
  ["GET", "/notes/{id}/copies", "Copies"],
  ["POST", "/notes/{id}/copies", "Copies: create"],
  ["POST", "/notes/{id}/send", "Send"],
])("%s %s on an entry is %s", (verb, path, label) => expect(entryLabel({ verb, path })).toBe(label));

test.each([
  ["About it.\n\nNeeds the scope `notes:write`.", ["notes:write"]],
  ["About it.\n\nNeeds the scopes `notes:write` and `services:read`.", ["notes:write", "services:read"]],
  ["About it.", []],
])("the description %j has the scopes %j", (description, scopes) => {
  const get = { ...base, operationId: "getNote", description, responses: {} };
  const [operation] = operationsOf({ paths: { "/notes/{id}": { get } }, components: { schemas: {} } });
  expect(operation).toMatchObject({ scopes, about: "About it." });
});
