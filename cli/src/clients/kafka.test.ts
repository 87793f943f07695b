import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { kafka } from "./kafka.ts";

test("a session signs in over TLS, and has its password in a file", () => {
  const connection = { host: "bus.example", port: 9092, ca_certificate: "PEM" } as Connection;
  const files = new Map<string, string>();
  const write = (name: string, content: string) => {
    files.set(name, content);
    return `/private/${name}`;
  };
  expect(kafka.session(connection, { user: "app_user", password: "a b=c" }, { write })).toEqual({
    args: ["-F", "/private/kcat.conf"],
    environment: {},
  });
  expect(files.get("kcat.conf")).toBe(
    "bootstrap.servers=bus.example:9092\nsecurity.protocol=SASL_SSL\nsasl.mechanisms=SCRAM-SHA-512\n" +
      "sasl.username=app_user\nsasl.password=a b=c\nssl.ca.location=/private/ca.pem\n",
  );
});
