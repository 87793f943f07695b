import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Profile,
  profilesFile,
  readProfiles,
  removeProfile,
  saveProfile,
  selectProfile,
  SettingsError,
} from "./profiles.ts";
import { findSettings, type SettingsOptions, readSettings } from "./settings.ts";

let directory = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-settings-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const bearer = (token: string) => ({ kind: "bearer", token }) as const;
const basic = (name: string, secret: string) => ({ kind: "basic", name, secret }) as const;

const key: Profile = { base_url: "https://p:1", token: "t", organization: "o", ca_file: "/ca" };
const admin = {
  base_url: "https://a:1",
  ca_file: "/a/ca",
  username: "u",
  password: "pw",
  api_key_id: "hfk_1",
  api_key_secret: "s",
  token: "short-lived",
};

/** Reads settings of an environment with only these variables. */
function settings(environment: Record<string, string> = {}, options: SettingsOptions = {}, defaultDirectory?: string) {
  return readSettings(options, { XDG_CONFIG_HOME: directory, ...environment }, defaultDirectory);
}

function installation(): string {
  writeFileSync(join(directory, "admin.json"), JSON.stringify(admin));
  return directory;
}

describe("profiles", () => {
  test("are stored so that only their user can read them, and the first is current", () => {
    const environment = { XDG_CONFIG_HOME: directory };
    expect(readProfiles(environment)).toEqual({ current: null, profiles: {} });
    saveProfile(environment, "one", key);
    saveProfile(environment, "two", admin);
    expect(profilesFile(environment)).toBe(join(directory, "holdfast", "profiles.json"));
    expect(statSync(profilesFile(environment)).mode & 0o777).toBe(0o600);
    expect(statSync(join(directory, "holdfast")).mode & 0o777).toBe(0o700);
    expect(readProfiles(environment)).toEqual({ current: "one", profiles: { one: key, two: admin } });
    selectProfile(environment, "two");
    removeProfile(environment, "two");
    expect(readProfiles(environment)).toEqual({ current: null, profiles: { one: key } });
    for (const name of ["two", "toString"]) {
      expect(() => removeProfile(environment, name)).toThrow(SettingsError);
      expect(() => selectProfile(environment, name)).toThrow(`there is no profile ${name}`);
    }
    expect(() => saveProfile(environment, "../x", key)).toThrow(SettingsError);
    chmodSync(profilesFile(environment), 0o640);
    expect(() => readProfiles(environment)).toThrow("others can read");
  });
});

describe("settings", () => {
  const environment = {
    HOLDFAST_BASE_URL: "https://e:1/",
    HOLDFAST_API_KEY_ID: "hfk_e",
    HOLDFAST_API_KEY_SECRET: "es",
  };

  test("arguments precede the environment, profiles and the local installation", () => {
    const options = { baseUrl: "https://g:1", credentials: bearer("g"), organization: "go" };
    const local = installation();
    expect(settings({}, {}, local)).toMatchObject({
      baseUrl: "https://a:1",
      credentials: basic("hfk_1", "s"),
      userCredentials: basic("u", "pw"),
      caFile: "/a/ca",
      dataDirectory: local,
    });
    saveProfile({ XDG_CONFIG_HOME: directory }, "p", key);
    expect(settings({}, {}, local)).toMatchObject({ baseUrl: "https://p:1", credentials: bearer("t"), caFile: "/ca" });
    expect(settings(environment, {}, local)).toMatchObject({
      baseUrl: "https://e:1",
      credentials: basic("hfk_e", "es"),
    });
    expect(settings(environment, options, local)).toEqual({
      baseUrl: "https://g:1",
      credentials: bearer("g"),
      userCredentials: bearer("g"),
      organization: "go",
      caFile: undefined,
      dataDirectory: undefined,
    });
  });

  test("a profile or data directory has the precedence of the place that names it", () => {
    const local = installation();
    saveProfile({ XDG_CONFIG_HOME: directory }, "other", { base_url: "https://o:1", token: "o" });
    saveProfile({ XDG_CONFIG_HOME: directory }, "p", key);
    expect(settings(environment, { profile: "p" }).baseUrl).toBe("https://p:1");
    expect(settings({ HOLDFAST_PROFILE: "p" }).baseUrl).toBe("https://p:1");
    expect(settings({ ...environment, HOLDFAST_PROFILE: "p" }).baseUrl).toBe("https://e:1");
    expect(settings({ HOLDFAST_DATA: local }).baseUrl).toBe("https://a:1");
    expect(settings({ HOLDFAST_PROFILE: "p" }, { dataDirectory: local }).baseUrl).toBe("https://a:1");
    expect(() => settings({ HOLDFAST_DATA: "/none" })).toThrow("there is no installation in /none");
    expect(() => settings({ HOLDFAST_PROFILE: "q" })).toThrow("there is no profile q");
    rmSync(join(directory, "admin.json"));
    writeFileSync(join(directory, "installation.json"), "{}");
    const stopped = `the installation in ${directory} does not run: \`npm start\` starts it`;
    expect(() => settings({}, { dataDirectory: directory })).toThrow(stopped);
  });

  test("credentials of one installation are not used for another", () => {
    saveProfile({ XDG_CONFIG_HOME: directory }, "p", key);
    expect(() => settings({ HOLDFAST_BASE_URL: "https://e:1" }, {}, installation())).toThrow("no credential");
    expect(() => settings(environment, { baseUrl: "https://g:1" })).toThrow("no credential");
    expect(settings({ HOLDFAST_TOKEN: "mine" })).toMatchObject({
      baseUrl: "https://p:1",
      credentials: bearer("mine"),
      organization: undefined,
      caFile: "/ca",
    });
  });

  test("another organization uses the user's credentials, and empty variables are unset", () => {
    const local = installation();
    const empty = { HOLDFAST_BASE_URL: "", HOLDFAST_TOKEN: "", HOLDFAST_ORGANIZATION: "" };
    expect(settings(empty, {}, local)).toMatchObject({ credentials: basic("hfk_1", "s"), organization: undefined });
    expect(settings({ HOLDFAST_ORGANIZATION: "x" }, {}, local).credentials).toEqual(basic("u", "pw"));
    saveProfile({ XDG_CONFIG_HOME: directory }, "p", { ...key, username: "u", password: "pw" });
    expect(settings().credentials).toEqual(bearer("t"));
    expect(() => settings({ HOLDFAST_API_KEY_ID: "hfk_1" })).toThrow("without HOLDFAST_API_KEY_SECRET");
    removeProfile({ XDG_CONFIG_HOME: directory }, "p");
    expect(() => settings()).toThrow("set HOLDFAST_BASE_URL");
  });

  test("a signed-out profile has settings without credentials, not those of the local owner", () => {
    const local = installation();
    saveProfile({ XDG_CONFIG_HOME: directory }, "p", { base_url: "https://a:1", organization: "o", username: "anna" });
    const variables = { XDG_CONFIG_HOME: directory };
    expect(findSettings({}, variables, local)).toMatchObject({
      baseUrl: "https://a:1",
      organization: "o",
      username: "anna",
      credentials: undefined,
      caFile: "/a/ca",
    });
    expect(() => settings({}, {}, local)).toThrow("no credential");
    expect(settings({ HOLDFAST_TOKEN: "mine" }, {}, local).credentials).toEqual(bearer("mine"));
    expect(settings({ HOLDFAST_DATA: local }).credentials).toEqual(basic("hfk_1", "s"));
  });
});
