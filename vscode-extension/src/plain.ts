/**
 * The text of a notification without links: VS Code makes one of `[words](command:…)`, which runs a command when it is clicked,
 * and names come from programs.
 */
export function plain(text: string): string {
  return text.replaceAll("](", "] (");
}
