import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applyAllowLists, parseAuthorities, parseServers, parseSessions } from "./front-commands.ts";
import type { Front } from "./front.ts";

const output = `Filename: /var/lib/holdfast/instance/tls/ca.crt
Status: Used
 
Certificate #1:
Serial: 5A6DCA278B2F74B2AE3C98A98C957C2525B57EC8
Algorithm: EC256
SHA1 FingerPrint: C64F37C3812E59155D1441671A07E3FF7934B43E
Subject: /CN=new

Certificate #2:
SHA1 FingerPrint: 0A4F37C3812E59155D1441671A07E3FF7934B43E
Subject: /CN=old
`;

test("the listener's authorities are identified by their fingerprints", () => {
  const both = ["0A4F37C3812E59155D1441671A07E3FF7934B43E", "C64F37C3812E59155D1441671A07E3FF7934B43E"];
  expect(parseAuthorities(output)).toEqual(both);
});

test("a session has its listener and its client's address", () => {
  const sessions = `0x55c0: proto=tcpv4 src=10.0.0.7:40112 fe=listener be=engine srv=engine
0x55c1: proto=tcpv6 src=[fd00::7]:40113 fe=private be=private srv=private
0x55c2: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> srv=<none>
`;
  expect(parseSessions(sessions)).toEqual([
    { id: "0x55c0", listener: "listener", source: "10.0.0.7" },
    { id: "0x55c1", listener: "private", source: "fd00::7" },
  ]);
});

test("allow-lists are applied to a front that does not listen yet", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-front-"));
  const front: Front = {
    nodeId: "n-1",
    program: "haproxy",
    configDirectory: directory,
    commandSocket: join(directory, "front.sock"),
    certificateFile: "",
    keyFile: "",
    vcpu: 1,
    connectionLimit: 1,
    idleComment: "",
    listeners: [],
    backends: {},
  };
  const commands: string[] = [];
  const server = createServer((socket) => {
    socket.setEncoding("utf8").once("data", (text: string) => {
      commands.push(text.trim());
      socket.end();
    });
  });
  try {
    const applied = applyAllowLists(front, new AbortController().signal);
    // The first attempt finds no socket.
    await expect(Promise.race([applied, Promise.resolve("waiting")])).resolves.toBe("waiting");
    server.listen(front.commandSocket);
    await applied;
    expect(commands).toEqual(["show info", "show sess"]);
  } finally {
    server.close();
    rmSync(directory, { recursive: true });
  }
});

test("a server has its address, and is in use unless it is in maintenance", () => {
  const states = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_port
5 primary 1 own - 2 0 1 0
5 primary 2 other 10.0.0.7 0 5 1 13307
5 primary 3 third fd00::7 2 4 1 13307

`;
  expect([...parseServers(states)]).toEqual([
    ["own", { address: "-", port: 0, isInUse: true }],
    ["other", { address: "10.0.0.7", port: 13_307, isInUse: false }],
    ["third", { address: "fd00::7", port: 13_307, isInUse: true }],
  ]);
});
