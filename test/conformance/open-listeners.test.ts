import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

/**
 * Files with a node server that call `listen` or `bind` themselves, and the reason why egress cannot reach that server.
 */
// biome-ignore format: a table, aligned so that it reads as one
const others: Readonly<Record<string, string>> = {
  "agent/keeper/keeper-server.ts":   "a socket of the file system",
  "agent/src/backup/agent-link.ts":  "a socket of the file system",
  "agent/src/os/listening-sockets.ts": "checks whether an address exists, and closes",
  "common/src/metrics-listener.ts":  "a socket of the file system, where one is named",
  "dns/src/udp-server.ts":           "UDP, which egress does not speak",
  "inference/src/main.ts":           "the server of https/, which opens by `listenAt`",
  "ingress/src/login-server.ts":     "a socket of the file system",
  "local/src/machine-host.ts":       "looks whether an address is free, and closes",
  "local/src/ports.ts":              "looks whether a port is free, and closes",
  "opmsg/src/opmsg-server.ts":       "a socket of the file system",
  "tds/src/tds-server.ts":           "a socket of the file system",
};

const checkout = join(import.meta.dirname, "../..");
const makesServer =
  /import \{[^}]*\bcreate(?:Secure)?(?:Server|Socket)\b[^}]*\} from "node:(?:net|tls|https?|http2|dgram)"/;
const begins = /\.(?:listen|bind)\(/;

test("every listener on a network is opened by the function that registers it", () => {
  const files = (sourceFiles() as string[]).filter(
    (file) => /^(?!bench|test)[a-z]+\/(src|keeper)\/.*\.ts$/.test(file) && !file.endsWith(".test.ts"),
  );
  expect(files.length).toBeGreaterThan(500);
  const found = files.filter((file) => {
    const text = readFileSync(join(checkout, file), "utf8");
    return makesServer.test(text) && begins.test(text);
  });
  expect(found.toSorted()).toEqual(Object.keys(others));
});
