import { expect, test } from "vitest";
import { type JoinFile, parseJoinFile } from "./join-file.ts";

const file: JoinFile = {
  installation_id: "inst",
  host_id: "h-2",
  address: "192.0.2.2:8450",
  controllers: ["192.0.2.1:8444"],
  ca_fingerprint: "ab01",
  token: "hf-very-secret",
  expires_at: "2026-01-01T00:10:00.000Z",
  taken_blocks: ["127.77"],
};

test("a join file is parsed, with its fingerprint in any format", () => {
  expect(parseJoinFile(JSON.stringify(file))).toEqual(file);
  expect(parseJoinFile(JSON.stringify({ ...file, ca_fingerprint: "AB:01" }))).toEqual(file);
});

test.each([
  ["{", "not JSON"],
  ["[]", "no installation_id"],
  ["null", "not a JSON object"],
  [JSON.stringify({ ...file, token: "" }), "no token"],
  [JSON.stringify({ ...file, controllers: "192.0.2.1:8444" }), "no controllers"],
  [JSON.stringify({ ...file, controllers: [] }), "names no controllers"],
  [JSON.stringify({ ...file, address: "192.0.2.2" }), "192.0.2.2 is not host:port"],
])("%s: %s", (text, problem) => {
  expect(() => parseJoinFile(text)).toThrow(problem);
  expect(() => parseJoinFile(text)).not.toThrow("hf-very-secret");
});
