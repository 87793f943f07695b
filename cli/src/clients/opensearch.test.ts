import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { opensearch } from "./opensearch.ts";

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
