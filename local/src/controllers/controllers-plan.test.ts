import { expect, test } from "vitest";
import { type ControllersArguments, readControllersPlan, requireObjectsKey } from "./controllers-plan.ts";

const addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
const given = {
  domain: "svc.example.com",
  history: "192.0.2.9",
  objects: "s3://backups/holdfast?endpoint=https://s3.example.com",
  addresses,
};

test("a plan has its arguments, or those of the stored plan", () => {
  expect(readControllersPlan(given)).toEqual(given);
  expect(readControllersPlan({ addresses: [] }, given)).toEqual(given);
  expect(readControllersPlan({ ...given, history: "history.example.com" })).toMatchObject({
    history: "history.example.com",
  });
  const five = [...addresses, "2001:db8::4", "2001:db8::5"];
  expect(readControllersPlan({ ...given, addresses: five }).addresses).toEqual(five);
});

test.each<[Partial<ControllersArguments>, string]>([
  [{ domain: "" }, "--domain is missing"],
  [{ domain: "Svc.Example.com" }, "--domain: Svc.Example.com is not a domain, such as svc.example.com"],
  [{ domain: "svc" }, "--domain: svc is not a domain"],
  [{ history: "" }, "--history is missing"],
  [{ history: "192.0.2.999" }, "--history: 192.0.2.999 is neither an address nor the name of a host"],
  [{ history: "db 1" }, "--history: db 1 is neither an address nor the name of a host"],
  [{ history: "192.0.2.2" }, "--history: 192.0.2.2 is the host of a controller; name another host"],
  [{ objects: "" }, "--objects is missing"],
  [{ objects: "file:///srv/objects" }, "is a directory of one host; use s3://"],
  [{ objects: "/srv/objects" }, "is a directory of one host; use s3://"],
  [{ objects: "https://s3.example.com/backups" }, "is not s3://BUCKET/PREFIX?endpoint=https://HOST"],
  [{ objects: "s3:///holdfast?endpoint=https://s3.example.com" }, "is not s3://BUCKET/PREFIX"],
  [{ objects: "s3://backups/holdfast" }, "has no endpoint; add ?endpoint=https://HOST"],
  [{ objects: "s3://backups/holdfast?endpoint=s3.example.com" }, "has no endpoint"],
  [{ addresses: [] }, "0 addresses: name 3 hosts, or 5"],
  [{ addresses: addresses.slice(1) }, "2 addresses: name 3 hosts, or 5"],
  [{ addresses: [...addresses, "192.0.2.4"] }, "4 addresses: name 3 hosts, or 5"],
  [{ addresses: [...addresses.slice(1), "db1.example.com"] }, "db1.example.com is not an IP address"],
  [{ addresses: [...addresses.slice(1), "127.0.0.1"] }, "127.0.0.1: other hosts do not reach this address"],
  [{ addresses: [...addresses.slice(1), "0.0.0.0"] }, "0.0.0.0: other hosts do not reach this address"],
  [{ addresses: [...addresses.slice(1), "::1"] }, "::1: other hosts do not reach this address"],
  [{ addresses: [...addresses.slice(1), "192.0.2.2"] }, "192.0.2.2 is named twice"],
])("%j is refused", (change, message) => {
  expect(() => readControllersPlan({ ...given, ...change })).toThrow(message);
});

test.each<[Partial<ControllersArguments>, string]>([
  [{ domain: "db.example.com" }, "--domain: the directory is prepared for svc.example.com; leave --domain out"],
  [{ history: "192.0.2.8" }, "--history: the directory is prepared for 192.0.2.9"],
  [{ objects: "s3://other?endpoint=https://s3.example.com" }, "--objects: the directory is prepared for s3://backups"],
  [{ addresses: addresses.toReversed() }, "prepared for the hosts 192.0.2.1 192.0.2.2 192.0.2.3; leave the addresses"],
])("%j differs from the stored plan and is refused", (change, message) => {
  expect(() => readControllersPlan({ ...given, ...change }, given)).toThrow(message);
});

test("a credential without id or secret is refused, without its content", () => {
  expect(() => requireObjectsKey('{"id": "a", "secret": "b"}', "s3.json")).not.toThrow();
  for (const text of ["", "{}", "null", '{"id": "a", "secret": ""}', "AKIA:private"])
    expect(() => requireObjectsKey(text, "s3.json")).toThrow(/^--objects-key: s3\.json is not JSON with id and secret/);
  expect(() => requireObjectsKey("AKIA:private", "s3.json")).not.toThrow(/private/);
});
