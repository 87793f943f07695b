import { describe, expect, it } from "vitest";
import { endpointOf, endpointsOf, endpointText } from "./endpoint.ts";

describe("an endpoint", () => {
  it.each([
    ["localhost:8443", "localhost", 8443],
    ["127.0.0.1:0", "127.0.0.1", 0],
    ["[::1]:53", "::1", 53],
    ["[fe80::1%eth0]:53", "fe80::1%eth0", 53],
    [":8443", "", 8443],
  ])("is read from %s", (text, host, port) => {
    expect(endpointOf(text)).toEqual({ host, port });
    expect(endpointText(host, port)).toBe(text);
  });

  it("comes first of several, of which there is one at least", () => {
    expect(endpointsOf(["a:1", "b:2"])).toEqual([
      { host: "a", port: 1 },
      { host: "b", port: 2 },
    ]);
    expect(() => endpointsOf([])).toThrow("no host:port");
  });

  it.each([
    "localhost",
    "localhost:",
    "::1:53",
    "[::1]",
    "[::1:53",
    "localhost:65536",
    "localhost:-1",
    "http://a:1",
    "",
  ])("is not %s", (text) => {
    expect(() => endpointOf(text)).toThrow("is not host:port");
  });
});
