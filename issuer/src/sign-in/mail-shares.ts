import { fairShareOf } from "@holdfast/common/concurrency/fair-share.ts";

/**
 * Shares of an app's mails in an hour. Half of them is the limit of addresses without a user, and a quarter is reserved
 * for browsers that signed in before. The common part, three quarters, and the mails to one address are divided fairly
 * (`fairShareOf`): a source gets up to a fifth, the next one a fifth of the rest, and so on, so few sources do not use
 * them up.
 */

/** The requester of a mail, whose mails are counted together. */
export interface MailRequester {
  /** Name of the requester, as stored in rows. */
  readonly source: string;
  /**
   * `browser`: a browser in which the user of the address signed in before. `network`: the address or network of the
   * request. `shared`: a proxy that reveals no client addresses, whose requesters have no limit by a fair share.
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
  /** Mails to addresses without a user. */
  readonly new_addresses: number;
  /** Mails to users that were not requested in browsers that signed in before. */
  readonly users: number;
  /** Mails to users that were requested in browsers that signed in before. */
  readonly browsers: number;
  /** Mails to addresses without a user that this requester caused. */
  readonly own_new_addresses: number;
  /** Mails to users that this requester caused. */
  readonly own_users: number;
  /** Mails to this address that this requester caused. */
  readonly own_to_address: number;
  /** Mails to this address that any requester caused, except browsers that signed in before. */
  readonly to_address: number;
}

/** Maximum mails to one address in an hour, without mails that browsers which signed in before request. */
export const perAddressHour = 25;
/**
 * Maximum mails to one address in an hour for one browser that signed in before, or for a source if there is no other
 * one.
 */
export const perRequesterHour = 5;

/** Maximum mails in an hour to addresses without a user. */
export function newUsersShare(mailsPerHour: number): number {
  return Math.ceil(mailsPerHour / 2);
}

/** Mails in an hour that all requesters share: three quarters; the rest is for browsers that signed in before. */
function commonShare(mailsPerHour: number): number {
  return mailsPerHour - Math.floor(mailsPerHour / 4);
}

/** Maximum of one source in an hour: its part of the common share if no other source uses it. */
export function sourceShare(mailsPerHour: number): number {
  return Math.ceil(commonShare(mailsPerHour) / 5);
}

/**
 * Decides a request for a mail. `tooMany` depends on neither the address nor its user. `withheld` depends on them, so
 * the page must not show the difference to `sent`.
 */
export function decideMail(
  counts: MailCounts,
  { kind }: Pick<MailRequester, "kind">,
  { mailsPerHour, signUpOpen }: { readonly mailsPerHour: number; readonly signUpOpen: boolean },
): "sent" | "withheld" | "tooMany" {
  const common = counts.new_addresses + counts.users;
  const total = mailsPerHour - common - counts.browsers;
  const free = kind === "browser" ? total : Math.min(total, commonShare(mailsPerHour) - common);
  if (free <= 0) return "tooMany";
  const isInShare = (part: number, used: number) => part > 0 && (kind === "shared" || fairShareOf(part, used) > 0);
  const isInBudget = isInShare(free, counts.own_new_addresses + counts.own_users);
  const newUsersFree = newUsersShare(mailsPerHour) - counts.new_addresses;
  const isAllowed = counts.is_user || (signUpOpen && isInShare(newUsersFree, counts.own_new_addresses));
  const isInAddress =
    kind === "browser"
      ? counts.own_to_address < perRequesterHour
      : fairShareOf(perAddressHour - counts.to_address, counts.own_to_address) > 0;
  return isAllowed && isInBudget && isInAddress && !counts.is_repeated && !counts.of_source ? "sent" : "withheld";
}

/** Below this share of a limit, mails are sent again. */
const reopenShare = 0.9;

/**
 * Mail capacity of an app: for all addresses, only for users, or only for browsers that signed in before. A margin
 * below the limit prevents oscillation.
 */
export function capacityOf(
  { new_addresses, users, browsers }: Pick<MailCounts, "new_addresses" | "users" | "browsers">,
  mailsPerHour: number,
): "all" | "users" | "known-browsers" {
  const common = new_addresses + users;
  const isUsedUp = common >= commonShare(mailsPerHour) * reopenShare || common + browsers >= mailsPerHour * reopenShare;
  if (isUsedUp) return "known-browsers";
  return new_addresses < newUsersShare(mailsPerHour) * reopenShare ? "all" : "users";
}
