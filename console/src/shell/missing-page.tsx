import { ButtonLink } from "../parts/button.tsx";
import { Empty } from "../parts/notice.tsx";
import { PageHead } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";

/** The page of an address that no pattern matches. */
export function MissingPage() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty icon="search" title="Nothing is at this address">
        <p class="quiet">The page was removed, or the address is wrong.</p>
        <ButtonLink href={hrefOf("services")}>Go to services</ButtonLink>
      </Empty>
    </>
  );
}
