/** An image in the platform's registry. */
export interface ImageReference {
  /** Organization and name: `0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90/shop`. */
  readonly repository: string;
  /** A tag, or a digest such as `sha256:...`. */
  readonly reference: string;
}

const part = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const name = `${part}(?:/${part})*`;
const tag = "[A-Za-z0-9_][A-Za-z0-9._-]{0,127}";
const digest = "sha256:[0-9a-f]{64}";
const pattern = new RegExp(`^(?<name>${name})(?::(?<tag>${tag}))?(?:@(?<digest>${digest}))?$`);
/** JSON Schema of a reference, with the host of a registry or without. */
export const imageReferenceForm = { pattern: `^(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?${name}(?::${tag})?(?:@${digest})?$` };
const nameMax = 255;

/**
 * The image that a user names: `shop:1`, `shop@sha256:...`, with the organization's id before it or without, and with
 * the registry's host before that or without. Returns a fault as a text for another form, another registry or another
 * organization. Without a tag and a digest it is the tag `latest`, as for any client of a registry.
 */
export function parseImageReference(
  text: string,
  { organizationId, registry }: { readonly organizationId: string; readonly registry: string },
): ImageReference | string {
  const host = hostOf(text);
  const named = host === undefined ? text : text.slice(host.length + 1);
  const { name: path = "", tag: label = "latest", digest: sum } = pattern.exec(named)?.groups ?? {};
  if (path === "") return "must be the name of an image, such as shop:1";
  if (host !== undefined && host !== registry)
    return `must be an image of the platform's registry${registry === "" ? "" : `, ${registry}`}: push it there first`;
  const [first = "", ...rest] = path.split("/");
  if (isId(first) && rest.length > 0 && first !== organizationId) return "must be an image of your organization";
  const repository = first === organizationId && rest.length > 0 ? path : `${organizationId}/${path}`;
  if (repository.length > nameMax) return "is too long";
  return { repository, reference: sum ?? label };
}

/** The host before the name. As in Docker, a first part is a host if it has a dot or a port, or is `localhost`. */
function hostOf(text: string): string | undefined {
  const first = text.slice(0, Math.max(0, text.indexOf("/")));
  return /[.:]|^localhost$/.test(first) ? first : undefined;
}

function isId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}
