import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { expect, it } from "vitest";
import {
  type ConformanceClient,
  type ConnectOptions,
  ended,
  engineUser,
  type SubjectUsers,
} from "./conformance-subject.ts";
import type { EngineMachine } from "./engine-machine.ts";

type Enter = (machine: EngineMachine, options?: Partial<ConnectOptions>) => Promise<ConformanceClient>;

/** Tests of the users of a running engine, whose default user has the password "first secret". */
export function conformsToUsersFacet(subject: SubjectUsers, machineOf: () => EngineMachine, enter: Enter): void {
  const { verifierOf, wrongPassword, platformUser, mayNotWrite } = subject;
  const user = (username: string, role: string, password: string) => engineUser(subject, username, role, password);

  it("refuses a wrong password", async () => {
    await expect(enter(machineOf(), { password: "wrong" })).rejects.toThrow(wrongPassword);
  });

  it("rejects and hides the platform's user", async () => {
    const machine = machineOf();
    await expect(enter(machine, { user: "holdfast", password: "" })).rejects.toThrow(platformUser);
    const listed = await machine.driver.users?.list(machine.instance, machine.signal);
    expect(listed?.map(({ username }) => username)).toEqual([defaultUser]);
    await expect(
      machine.driver.users?.put(machine.instance, user("holdfast", "admin", "x"), machine.signal),
    ).rejects.toThrow("reserved for the platform");
  });

  it("creates, changes and drops users of each role", async () => {
    const machine = machineOf();
    const { driver, instance, signal } = machine;
    const { users } = driver;
    if (users === undefined) throw new Error("the driver has no users");
    const owner = await enter(machine);
    await owner.write("shared", "1");
    for (const role of ["admin", "readwrite", "readonly"]) {
      const name = `${role}_user`;
      expect(await users.put(instance, user(name, role, "one"), signal)).toEqual({ changed: true, role });
      expect(await users.put(instance, user(name, role, "one"), signal)).toEqual({ changed: false, role });
      const client = await enter(machine, { user: name, password: "one" });
      expect(await client.read("shared")).toBe("1");
      if (role === "readonly") await expect(client.write("shared", "2")).rejects.toThrow(mayNotWrite);
      else await client.write("shared", "1");
      expect(await users.check(instance, name, verifierOf("one"), signal)).toEqual({
        exists: true,
        matches: true,
      });
      expect(await users.put(instance, user(name, role, "two"), signal)).toEqual({ changed: true, role });
      const matching = { exists: true, matches: true, role };
      expect(await users.settled(instance, user(name, role, "two"), signal)).toEqual(matching);
      expect(await users.settled(instance, { username: name, verifier: "" }, signal)).toEqual({
        ...matching,
        matches: false,
      });
      expect(await users.check(instance, name, verifierOf("one"), signal)).toEqual({
        exists: true,
        matches: false,
      });
      await expect(enter(machine, { user: name, password: "one" })).rejects.toThrow(wrongPassword);
      await client.close();
    }
    const roles = await users.list(instance, signal);
    expect(roles.map(({ username, role }) => [username, role])).toEqual([
      ["admin_user", "admin"],
      [defaultUser, "admin"],
      ["readonly_user", "readonly"],
      ["readwrite_user", "readwrite"],
    ]);
    const demoted = await enter(machine, { user: "admin_user", password: "two" });
    await demoted.write("shared", "1");
    await users.put(instance, user("admin_user", "readonly", "two"), signal);
    await demoted.close();
    const reader = await enter(machine, { user: "admin_user", password: "two" });
    await expect(reader.write("shared", "3")).rejects.toThrow(mayNotWrite);
    for (const role of ["admin", "readwrite", "readonly"]) {
      expect(await users.drop(instance, `${role}_user`, signal)).toEqual({ existed: true });
      expect(await users.drop(instance, `${role}_user`, signal)).toEqual({ existed: false });
      await expect(enter(machine, { user: `${role}_user`, password: "two" })).rejects.toThrow(wrongPassword);
    }
    await ended(reader);
    await expect(users.drop(instance, defaultUser, signal)).rejects.toThrow("cannot be dropped");
    expect(await users.check(instance, "nobody", verifierOf("x"), signal)).toEqual({
      exists: false,
      matches: false,
    });
    expect(await owner.read("shared")).toBe("1");
    await owner.close();
  });
}
