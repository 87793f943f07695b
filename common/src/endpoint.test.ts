import { describe, expect, it } from "vitest";
import { dialableEndpointOf, endpointOf, endpointsOf, endpointText } from "./endpoint.ts";

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

  it("is the first of a non-empty list", () => {
    expect(endpointsOf(["a:1", "b:2"])).toEqual([
      { host: "a", port: 1 },
      { host: "b", port: 2 },
    ]);
    expect(() => endpointsOf([])).toThrow("a host:port is required");
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

  it.each(["host-2.example.test:8450", "second:1", "192.0.2.2:8450", "[2001:db8::2]:8450"])(
    "is dialed at %s",
    (text) => {
      expect(dialableEndpointOf(text)).toEqual(endpointOf(text));
    },
  );

  it.each([":8450", "192.0.2.2:0", "two words:1", "user@host:1", " host:1", "-host:1", "host-:1", "a..b:1"])(
    "is not dialed at %s",
    (text) => {
      expect(() => dialableEndpointOf(text)).toThrow("host:port");
    },
  );
});
