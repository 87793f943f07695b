import { expect, test } from "vitest";
import { type Front, frontCompanion, type TerminatingListener } from "./front.ts";
import { frontFiles } from "./front-config.ts";

const clients = { by: "network", file: "allowed.lst", cidrs: ["10.0.0.0/8"] } as const;
const terminating: TerminatingListener<"engine"> = {
  name: "listener",
  mode: "terminate",
  addresses: [{ address: "10.77.0.2", port: 9092 }],
  connectionLimit: 500,
  allows: clients,
  backend: "engine",
};
const front: Front<"engine" | "private"> = {
  nodeId: "node",
  program: "/usr/sbin/haproxy",
  configDirectory: "/etc/h",
  commandSocket: "/run/h/front.sock",
  certificateFile: "/tls/server.crt",
  keyFile: "/tls/server.key",
  vcpu: 2,
  connectionLimit: 600,
  idleComment: "The broker ends idle sessions.",
  listeners: [
    terminating,
    {
      name: "private",
      mode: "pass",
      addresses: [{ address: "fd00::2", port: 9095 }],
      allows: { by: "network", file: "members.lst", cidrs: ["10.77.0.0/24", "fd00::/64"] },
      backend: "private",
    },
  ],
  backends: {
    engine: {
      address: { address: "127.0.0.1", port: 19092 },
      tls: { certificateFile: "/tls/front.pem", authorityFile: "/tls/machine.crt" },
    },
    private: { socket: "/run/h/private.sock" },
  },
};
const configOf = (of: Front) => frontFiles(of)[0]?.content ?? "";

test("of two listeners one terminates TLS and one passes it on: each checks addresses by its list first", () => {
  const [, rest] = configOf(front).split("timeout server 24d\n");
  expect(rest).toBe(`frontend listener
  maxconn 500
  bind 10.77.0.2:9092 ssl crt /tls/server.crt
  tcp-request connection reject unless { src -f /etc/h/allowed.lst }
  tcp-request session reject unless { src -f /etc/h/allowed.lst }
  default_backend engine
frontend private
  bind [fd00::2]:9095
  tcp-request connection reject unless { src -f /etc/h/members.lst }
  default_backend private
backend engine
  server engine 127.0.0.1:19092 ssl crt /tls/front.pem ca-file /tls/machine.crt verify required
backend private
  server private unix@/run/h/private.sock
`);
  expect(configOf(front)).toContain("  # The broker ends idle sessions.\n  timeout client 24d\n");
});

test("clients of an engine with a check are answered by the front itself while the engine does not serve", () => {
  const check = { path: "/health?mode=strict", refusal: '{"status":503}' };
  const checked = { ...front, backends: { ...front.backends, engine: { ...front.backends.engine, check } } };
  const [, rest] = configOf(checked).split("timeout server 24d\n");
  expect(rest).toContain(`  tcp-request session reject unless { src -f /etc/h/allowed.lst }
  tcp-request content set-var(txn.unavailable) bool(true) if { nbsrv(engine) eq 0 }
  tcp-request content switch-mode http if { var(txn.unavailable) -m bool }
  use_backend engine-unavailable if { var(txn.unavailable) -m bool }
  default_backend engine
frontend private
`);
  expect(rest).toContain(`backend engine
  option httpchk
  http-check send meth GET uri /health?mode=strict
  timeout check 5s
  server engine 127.0.0.1:19092 ssl crt /tls/front.pem ca-file /tls/machine.crt verify required check inter 2s fastinter 250ms downinter 250ms fall 3 rise 1 disabled
backend engine-unavailable
  mode http
  http-request return status 503 content-type application/json hdr Retry-After 2 hdr Connection close string '{"status":503}'
backend private
`);
});

test("each list is one file, also if two listeners share it", () => {
  expect(frontFiles(front).map(({ name, content, mode }) => [name, mode, content.split("\n").length - 1])).toEqual([
    ["listener.cfg", 0o640, expect.any(Number)],
    ["allowed.lst", 0o640, 1],
    ["members.lst", 0o640, 2],
  ]);
  const sharing = { ...front, listeners: [terminating, { ...terminating, name: "second" }] };
  expect(frontFiles(sharing).map(({ name }) => name)).toEqual(["listener.cfg", "allowed.lst"]);
});

test("a front has the right to low ports only if it listens on one", () => {
  const at = (port: number) => ({ ...terminating, addresses: [{ address: "10.77.0.2", port }] });
  const roleOf = (...listeners: TerminatingListener<"engine">[]) => frontCompanion({ ...front, listeners }).role;
  expect([roleOf(at(9092)), roleOf(at(1024)), roleOf(at(9092), at(443))]).toEqual([undefined, undefined, "front"]);
});

test("the threads of a front follow the plan, from one to four", () => {
  const threads = (vcpu: number) => /nbthread (\d+)/.exec(configOf({ ...front, vcpu }))?.[1];
  expect([1, 2, 4, 32].map(threads)).toEqual(["1", "1", "2", "4"]);
});

test("a front forwards to another one with its client's address, which that one checks after it is known", () => {
  const socket = "/run/h/forwarded.sock";
  const address = { address: "fd00::3", port: 13_307 };
  const [, rest] = configOf({
    ...front,
    listeners: [
      { name: "forwarded", mode: "pass", addresses: [], forwardedSocket: socket, allows: clients, backend: "next" },
      {
        name: "members",
        mode: "pass",
        addresses: [{ address: "10.77.0.2", port: 13_307 }],
        takesClientAddress: true,
        allows: { by: "network", file: "members.lst", cidrs: ["10.77.0.3"] },
        backend: "next",
      },
    ],
    backends: {
      next: {
        fronts: [
          { name: "own", at: { socket }, isInUse: true },
          { name: "other", at: { address, sourceAddress: "fd00::2" }, isInUse: false },
        ],
      },
    },
  }).split("timeout server 24d\n");
  expect(rest).toBe(`frontend forwarded
  bind unix@/run/h/forwarded.sock mode 600 accept-proxy
  tcp-request session reject unless { src -f /etc/h/allowed.lst }
  default_backend next
frontend members
  bind 10.77.0.2:13307 accept-proxy
  tcp-request connection reject unless { src -f /etc/h/members.lst }
  default_backend next
backend next
  option srvtcpka
  server own unix@/run/h/forwarded.sock send-proxy-v2
  server other [fd00::3]:13307 source [fd00::2] send-proxy-v2 disabled
`);
});
