import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { opensearch } from "./opensearch.ts";
import { opensearchSnippets } from "./opensearch-snippets.ts";

test("a session verifies the certificate, and has its password in a file", () => {
  const connection = { host: "logs.example", port: 9200, ca_certificate: "PEM" } as Connection;
  const files = new Map<string, string>();
  const write = (name: string, content: string) => {
    files.set(name, content);
    return `/private/${name}`;
  };
  expect(opensearch.session(connection, { user: "app_user", password: 'a"b\\c' }, { write })).toEqual({
    args: ["--config", "/private/curl.conf"],
    environment: {},
  });
  expect(files.get("curl.conf")).toBe(
    'cacert = "/private/ca.pem"\nuser = "app_user:a\\"b\\\\c"\nurl = "https://logs.example:9200/"\nsilent\nshow-error\n',
  );
});

test.each([
  [[], []],
  [["/_cat/nodes?v"], ["--request-target", "/_cat/nodes?v"]],
  [
    ["/orders/_doc/7", "-X", "PUT", "-d", "{}"],
    ["--header", "Content-Type: application/json", "--request-target", "/orders/_doc/7", "-X", "PUT", "-d", "{}"],
  ],
  [["--data-binary", "@bulk", "-H", "content-type: application/x-ndjson"], undefined],
  [["--request-target", "/_cluster/health"], undefined],
])("a first path is the target of a call, and a body is JSON by default: %j", (given, expected) => {
  expect(opensearch.arguments?.(given)).toEqual(expected ?? given);
});

test.each([
  ["python", `[{"host": "127.77.0.1", "port": 9200}]`, `ssl_assert_hostname="logs.example"`],
  ["node", `node: "https://127.77.0.1:9200"`, `servername: "logs.example"`],
  ["curl", "--resolve 'logs.example:9200:127.77.0.1'", "'https://logs.example:9200/'"],
] as const)("a program in %s connects to the address, and verifies the name", (language, address, name) => {
  const program = opensearchSnippets[language]?.({
    host: "logs.example",
    address: "127.77.0.1",
    port: 9200,
    user: "app_user",
    database: "",
    caFile: "/ca.pem",
    passwordFile: "/password",
    hostsFile: "/hosts",
    conninfo: "",
  });
  expect(program).toContain(address);
  expect(program).toContain(name);
  expect(program).not.toContain("undefined");
});
