import { expect, test } from "vitest";
import {
  capacityOf,
  decideMail,
  type MailCounts,
  type MailRequester,
  newUsersShare,
  perAddressHour,
  perRequesterHour,
  sourceShare,
} from "./mail-shares.ts";

interface Row {
  readonly email: string;
  readonly source: string;
  readonly isBrowser: boolean;
  readonly isUser: boolean;
}

/** An app without mails in the last hour; `requestMail` requests one, and later requests count it. */
function createApp(mailsPerHour: number, signUpOpen = true) {
  const sent: Row[] = [];
  const count = (matches: (row: Row) => boolean) => sent.filter(matches).length;
  return {
    sent,
    requestMail(email: string, source: string, kind: MailRequester["kind"] = "network", isUser = true) {
      const isOwn = (row: Row) => row.source === source;
      const counts: MailCounts = {
        is_user: isUser,
        is_repeated: false,
        of_source: false,
        new_addresses: count((row) => !row.isUser),
        users: count((row) => row.isUser && !row.isBrowser),
        browsers: count((row) => row.isUser && row.isBrowser),
        own_new_addresses: count((row) => isOwn(row) && !row.isUser),
        own_users: count((row) => isOwn(row) && row.isUser),
        own_to_address: count((row) => isOwn(row) && row.email === email),
        to_address: count((row) => row.email === email && !row.isBrowser),
      };
      const decision = decideMail(counts, { kind }, { mailsPerHour, signUpOpen });
      if (decision === "sent") sent.push({ email, source, isBrowser: kind === "browser", isUser });
      return decision;
    },
  };
}

test("twenty sources that take all they get leave mails to the next one", () => {
  const app = createApp(600);
  for (let source = 0; source < 20; source += 1) {
    for (let round = 0; round < 100; round += 1) app.requestMail(`u${source}-${round}@example.com`, `s${source}`);
    if (source === 0) expect(app.sent).toHaveLength(sourceShare(600));
  }
  expect(app.requestMail("victim@example.com", "fresh")).toBe("sent");
});

test("ten sources leave a mail of an address to the next one, and one source gets five", () => {
  const app = createApp(10_000);
  for (let source = 0; source < 10; source += 1) {
    for (let times = 0; times < 20; times += 1) app.requestMail("a@example.com", `s${source}`);
    if (source === 0) expect(app.sent).toHaveLength(perRequesterHour);
  }
  expect(app.requestMail("a@example.com", "fresh")).toBe("sent");
  for (let source = 10; source < 50; source += 1) app.requestMail("a@example.com", `s${source}`);
  expect(app.sent).toHaveLength(perAddressHour);
  const decisions = Array.from({ length: 8 }, () => app.requestMail("a@example.com", "own browser", "browser"));
  expect(decisions.filter((decision) => decision === "sent")).toHaveLength(perRequesterHour);
});

test.each([4, 6, 24, 600])("browsers that signed in before get mails after all others are used up: %i", (max) => {
  const app = createApp(max);
  for (let source = 0; source < max * 2; source += 1) app.requestMail(`u${source}@example.com`, `s${source}`);
  expect(app.requestMail("victim@example.com", "fresh")).toBe("tooMany");
  expect(app.requestMail("victim@example.com", "own browser", "browser")).toBe("sent");
});

test("unknown addresses get half of the mails, and users the others", () => {
  const app = createApp(24);
  for (let source = 0; source < 50; source += 1)
    app.requestMail(`n${source}@example.com`, `s${source}`, "network", false);
  expect(app.sent).toHaveLength(newUsersShare(24));
  expect(app.requestMail("user@example.com", "fresh")).toBe("sent");
  expect(createApp(24, false).requestMail("n@example.com", "s", "network", false)).toBe("withheld");
});

test("a refusal that the page names depends on no property of the address", () => {
  for (const isUser of [true, false]) {
    const app = createApp(24);
    for (let times = 0; times < 100; times += 1)
      expect(app.requestMail(`u${times}@example.com`, "one source", "network", isUser)).not.toBe("tooMany");
  }
});

test("a shared proxy may use up the common share, and no more", () => {
  const app = createApp(24);
  for (let times = 0; times < 50; times += 1) app.requestMail(`u${times}@example.com`, "balancer", "shared");
  expect(app.sent).toHaveLength(18);
});

test("one mail an hour is enough for one user", () => {
  expect(createApp(1).requestMail("a@example.com", "s")).toBe("sent");
  expect(createApp(1).requestMail("a@example.com", "s", "network", false)).toBe("sent");
});

test.each([
  [{ new_addresses: 0, users: 0, browsers: 0 }, "all"],
  [{ new_addresses: 11, users: 0, browsers: 0 }, "users"],
  [{ new_addresses: 8, users: 9, browsers: 0 }, "known-browsers"],
  [{ new_addresses: 0, users: 0, browsers: 22 }, "known-browsers"],
] as const)("the capacity of an app of 24 mails with %o is: %s", (counts, capacity) => {
  expect(capacityOf(counts, 24)).toBe(capacity);
});
