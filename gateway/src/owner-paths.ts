import { getOption } from "@bufbuild/protobuf";
import { rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { ApiMethod, RestRule } from "./method.ts";

/** A kind of owner of machines that has separate paths. */
export interface OwnerPath {
  readonly kind: string;
  /** First segment of the paths, such as `boards`. */
  readonly segment: string;
}

/** Prefix of the paths at which methods with the option `of_owner` are declared. */
const declaredBelow = "/managed-services/";

/**
 * The methods with the option `of_owner` at the paths of each kind: the method at
 * `/managed-services/{service_id}/health` is also at `/boards/{service_id}/health`, where it is limited to boards.
 * Throws for such a method whose declared path does not begin with `/managed-services/`.
 */
export function ownerMethods(methods: readonly ApiMethod[], paths: readonly OwnerPath[]): ApiMethod[] {
  const ofOwner = methods.flatMap((method) => {
    if (!getOption(method.description, rulesOption).ofOwner) return [];
    const { rest } = method;
    if (rest?.path.startsWith(declaredBelow) !== true || rest.segments[1]?.kind !== "variable")
      throw new Error(`${method.name} is about owners, and its path does not begin with ${declaredBelow}{id}`);
    return [{ method, rest }];
  });
  return paths.flatMap(({ kind, segment }) =>
    ofOwner.map(({ method, rest }) => ({ ...method, ownerKind: kind, rest: below(rest, segment) })),
  );
}

function below(rest: RestRule, segment: string): RestRule {
  const moved = (path: string) => `/${segment}/${path.slice(declaredBelow.length)}`;
  const { location } = rest;
  return {
    ...rest,
    path: moved(rest.path),
    segments: [{ kind: "literal", text: segment }, ...rest.segments.slice(1)],
    location: location?.startsWith(declaredBelow) === true ? moved(location) : location,
  };
}
