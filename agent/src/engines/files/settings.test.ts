import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontOf } from "./front.ts";
import { keyFiles } from "./driver.ts";
import { explainFailure, parseLog } from "./log.ts";
import { parseStatistics } from "./metrics.ts";
import { serverCommand } from "./server.ts";

const user = (username: string, role: string) =>
  create(EngineUserSchema, { username, role, verifier: `of ${username}` });

const instance: Instance = {
  spec: create(InstanceSpecSchema, {
    nodeId: "node",
    vcpu: 2,
    memoryBytes: 1n << 30n,
    address: "10.77.0.5",
    port: 9000,
    allowedCidrs: ["10.0.0.0/8"],
    bucket: "media-x7k2p9qa",
    users: [user("HFRWB", "readwrite"), user("HFRWA", "readwrite"), user("HFROA", "readonly")],
  }),
  paths: { data: "/data", config: "/config", tls: "/tls", run: "/run", software: "/usr", log: "/log/engine.log" },
};

test("each server has the keys of its access alone", () => {
  const keys = Object.fromEntries(
    keyFiles(instance).map(({ name, content }) => [name, JSON.parse(content) as unknown]),
  );
  const account = (access: string) => ({ access, secret: `of ${access}`, role: "admin" });
  expect(keys).toEqual({
    "writers/users.json": { accessAccounts: { HFRWA: account("HFRWA"), HFRWB: account("HFRWB") } },
    "readers/users.json": { accessAccounts: { HFROA: account("HFROA") } },
  });
});

test("a key whose role and prefix differ is on no server, and nobody else can be an admin", () => {
  const others = [user("HFRWC", "readonly"), user("HFROC", "readwrite"), user("holdfast", "admin")];
  const files = keyFiles({ spec: { ...instance.spec, users: others } });
  expect(files.map(({ content }) => JSON.parse(content) as unknown)).toEqual([
    { accessAccounts: {} },
    { accessAccounts: {} },
  ]);
});

test("only the server for readers is read-only, and no argument or setting has a secret", () => {
  const [writers, readers] = (["writers", "readers"] as const).map((server) => serverCommand(instance, server));
  expect([writers, readers].map((command) => command?.argv.includes("--readonly"))).toEqual([false, true]);
  expect(JSON.stringify([writers, readers])).not.toContain("of HF");
});

test("the front forwards requests to two servers, and changes the blocked methods without a restart", () => {
  const filesOf = (of: Instance) => new Map(frontFiles(frontOf(of)).map(({ name, content }) => [name, content]));
  const [open, blocked] = [filesOf(instance), filesOf({ ...instance, writesBlocked: true })];
  expect(open.get("listener.cfg")).toBe(blocked.get("listener.cfg"));
  expect(open.get("listener.cfg")).toContain("backend readers\n  mode http\n  server readers unix@/run/readers.sock\n");
  expect([open.get("blocked.lst"), blocked.get("blocked.lst")]).toEqual(["", "PUT\nPOST\n"]);
  expect(open.get("allowed.lst")).toBe("10.0.0.0/8\n");
});

test("both servers and the front know the host names of the bucket, the public one and the private one", () => {
  const named: Instance = { ...instance, spec: { ...instance.spec, bucketDomain: "media-x7k2p9qa.local.test" } };
  for (const server of ["writers", "readers"] as const) {
    expect(serverCommand(named, server).argv.join(" ")).toContain(" --virtual-domain media-x7k2p9qa ");
    expect(serverCommand(instance, server).argv).not.toContain("--virtual-domain");
  }
  const rules = frontFiles(frontOf(named)).find(({ name }) => name === "listener.cfg")?.content;
  expect(rules).toContain(
    "if { method DELETE } { path / } { req.hdr(host) -m beg media-x7k2p9qa.media-x7k2p9qa } !{ query ",
  );
});

test("the front refuses settings of websites, which the server would store without effect", () => {
  const rules = frontFiles(frontOf(instance)).find(({ name }) => name === "listener.cfg")?.content;
  expect(rules).toMatch(/return status 501 .*NotImplemented.* if \{ method PUT \} \{ query -m reg \(\^\|&\)website/);
});

test("the front refuses to encrypt objects, which the server would store unencrypted", () => {
  const rules = frontFiles(frontOf(instance)).find(({ name }) => name === "listener.cfg")?.content;
  for (const header of ["x-amz-server-side-encryption", "x-amz-server-side-encryption-customer-algorithm"])
    expect(rules).toMatch(new RegExp(`return status 501 .*NotImplemented.* if { req\\.hdr_cnt\\(${header}\\) gt 0 }`));
});

test("the front answers the creation of the bucket for writers' keys alone, before the server would fail", () => {
  const rules = frontFiles(frontOf(instance)).find(({ name }) => name === "listener.cfg")?.content;
  const creations = rules?.split("\n").filter((line) => line.includes("BucketAlreadyOwnedByYou")) ?? [];
  expect(creations.length).toBe(4);
  for (const line of creations) expect(line).toMatch(/ return status 409 .* if { method PUT } { path .*HFRW }$/);
});

test("a full disk refuses requests that need space, and neither deletions of objects nor completions of uploads", () => {
  const rules = frontFiles(frontOf(instance)).find(({ name }) => name === "listener.cfg")?.content;
  const refusals = rules?.split("\n").filter((line) => line.includes("InsufficientStorage")) ?? [];
  expect(refusals.map((line) => line.slice(line.indexOf(" if ")))).toEqual([
    " if { method -m str -f /config/blocked.lst } !{ method POST }",
    " if { method -m str -f /config/blocked.lst } !{ query -m reg (^|&)(delete|uploadId)(=|&|$) }",
  ]);
});

test("the front ends connections of silent clients, and pages read its refusals", () => {
  const rules = frontFiles(frontOf(instance)).find(({ name }) => name === "listener.cfg")?.content ?? "";
  expect(rules).toContain(
    "  mode http\n  timeout http-request 30s\n  timeout http-keep-alive 60s\n  timeout client 60s\n",
  );
  const refusals = rules.split("\n").filter((line) => line.includes("http-request return"));
  expect(refusals.filter((line) => !line.includes(" hdr access-control-allow-origin * "))).toEqual([]);
});

test("the front's statistics are read by column", () => {
  const figures = parseStatistics("# pxname,svname,bin,req_tot,\nlistener,FRONTEND,12,3,\n\n");
  expect([figures.get("bin"), figures.get("req_tot"), figures.get("bout")]).toEqual(["12", "3", undefined]);
});

test.each([
  ["2026/11/29 09:05:37 ERROR: write failed", "error", "write failed"],
  ["2026/11/29 09:05:37 listening", "info", "listening"],
])("a line of the log has its time and level: %s", (line, level, message) => {
  expect(parseLog(line)).toEqual({ time: new Date("2026-11-29T09:05:37Z"), level, message });
});

test.each([
  ["listen unix: address already in use", "port_busy"],
  ["open tmp: no space left on device", "disk_full"],
  ["panic: nothing known", "unknown"],
])("a failed start has its cause: %s", (output, cause) => {
  expect(explainFailure(output).cause).toBe(cause);
});
