import { fairShareOf } from "@holdfast/common/concurrency/fair-share.ts";

/**
 * Shares of an app's mails in an hour. Half of them is the limit of addresses without a user, and a quarter is reserved
 * for browsers that signed in before. The common part, three quarters, and the mails to one address are divided fairly
 * (`fairPart`): a source gets up to a fifth, the next one a fifth of the rest, and so on, so few sources do not use
 * them up.
 */

/** The requester of a mail, whose mails are counted together. */
export interface MailRequester {
  /** Name of the requester, as stored in rows. */
  readonly source: string;
  /**
   * `browser`: the user of the address signed in there before. `shared`: a proxy that reveals no client addresses, and
   * so has no share of its own.
   */
  readonly kind: "browser" | "network" | "shared";
}

/** Mails of the last hour, and the mails of 10 minutes that are counted against a fixed limit. */
export interface MailCounts {
  /** True if the address has a user. */
  readonly is_user: boolean;
  /** True if this requester got a mail to this address in the last 30 seconds. */
  readonly is_repeated: boolean;
  /** True if the source has reached its limit of 10 minutes for such addresses. */
  readonly of_source: boolean;
  /** To addresses without a user. */
  readonly strangers: number;
  /** To users, but not in browsers that signed in before. */
  readonly users: number;
  /** To users in browsers that signed in before. */
  readonly browsers: number;
  /** Those of `strangers` by this requester. */
  readonly own_strangers: number;
  /** Those to users by this requester. */
  readonly own_users: number;
  /** To this address by this requester. */
  readonly own_to_address: number;
  /** To this address by all requesters except browsers that signed in before. */
  readonly to_address: number;
}

/** Mails to one address in an hour, without those of browsers that signed in before. */
export const perAddressHour = 25;
/** Mails to one address in an hour by one browser that signed in before, or by a source if there is no other one. */
export const perRequesterHour = 5;

/** Mails in an hour for addresses without a user. */
export function newUsersShare(mailsPerHour: number): number {
  return Math.ceil(mailsPerHour / 2);
}

/** Mails in an hour without those that are reserved for browsers that signed in before. */
function commonShare(mailsPerHour: number): number {
  return mailsPerHour - Math.floor(mailsPerHour / 4);
}

/** Maximum of one source in an hour: its part of the common share if no other source uses it. */
export function sourceShare(mailsPerHour: number): number {
  return Math.ceil(commonShare(mailsPerHour) / 5);
}

/**
 * `tooMany` depends on neither the address nor its user; `withheld` is a limit that depends on them and so stays
 * invisible.
 */
export function decideMail(
  counts: MailCounts,
  { kind }: Pick<MailRequester, "kind">,
  { mailsPerHour, signUpOpen }: { readonly mailsPerHour: number; readonly signUpOpen: boolean },
): "sent" | "withheld" | "tooMany" {
  const common = counts.strangers + counts.users;
  const total = mailsPerHour - common - counts.browsers;
  const free = kind === "browser" ? total : Math.min(total, commonShare(mailsPerHour) - common);
  if (free <= 0) return "tooMany";
  const isInShare = (part: number, used: number) => part > 0 && (kind === "shared" || fairShareOf(part, used) > 0);
  const isInBudget = isInShare(free, counts.own_strangers + counts.own_users);
  const newUsersFree = newUsersShare(mailsPerHour) - counts.strangers;
  const isAllowed = counts.is_user || (signUpOpen && isInShare(newUsersFree, counts.own_strangers));
  const isInAddress =
    kind === "browser"
      ? counts.own_to_address < perRequesterHour
      : fairShareOf(perAddressHour - counts.to_address, counts.own_to_address) > 0;
  return isAllowed && isInBudget && isInAddress && !counts.is_repeated && !counts.of_source ? "sent" : "withheld";
}

const reopenShare = 0.9;

/**
 * Mail capacity of an app: for all addresses, only for users, or only for browsers that signed in before ("nobody"). A
 * margin below the limit prevents oscillation.
 */
export function capacityOf(
  { strangers, users, browsers }: Pick<MailCounts, "strangers" | "users" | "browsers">,
  mailsPerHour: number,
): "all" | "users" | "nobody" {
  const common = strangers + users;
  const isUsedUp = common >= commonShare(mailsPerHour) * reopenShare || common + browsers >= mailsPerHour * reopenShare;
  if (isUsedUp) return "nobody";
  return strangers < newUsersShare(mailsPerHour) * reopenShare ? "all" : "users";
}
