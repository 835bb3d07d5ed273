const ATTACHMENT = /(?:^|\s)@([a-z][a-z0-9+.-]*:\/\/\S+)/giu;
/** What stands between a person's words and each resource that was attached to them. */
const MARK = "\n\n---\n@";

/** The addresses of the resources a person wants attached: `@company://policies/return`. */
export function attachmentsIn(message: string): string[] {
  return [...message.matchAll(ATTACHMENT)].map(([, uri = ""]) => uri);
}

/** A message with a resource attached. */
export function attach(message: string, uri: string, content: string): string {
  return `${message}${MARK}${uri}\n${content}`;
}

/** What the person said themselves. */
export function withoutAttachments(message: string): string {
  const at = message.indexOf(MARK);
  return (at < 0 ? message : message.slice(0, at)).replace(ATTACHMENT, " ").trim();
}
