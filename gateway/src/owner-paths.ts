import { getOption } from "@bufbuild/protobuf";
import { rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { ApiMethod, RestRule } from "./method.ts";

/** A kind of owner of machines that has paths of its own. */
export interface OwnerPath {
  readonly kind: string;
  /** First segment of the paths, such as `boards`. */
  readonly segment: string;
}

/** Path of the objects of which `of_owner` methods are declared. */
const declaredBelow = "/managed-services/";

/**
 * The methods with the option `of_owner` for each kind with paths of its own: the method at
 * `/managed-services/{service_id}/health` is also at `/boards/{service_id}/health`, for boards alone. Throws for such a
 * method at another path.
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
