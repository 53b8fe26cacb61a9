package io.github.minikeeper.junit;

import io.github.minikeeper.Story;
import io.github.minikeeper.Universe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** Prints and saves the stories of failed tests. Uses neither JUnit 4 nor 5, so that either may be missing. */
final class Stories {
  /** The system property, and the configuration parameter of JUnit 5. */
  static final String PARAMETER = "minikeeper.stories";
  private static final String VARIABLE = "MINIKEEPER_STORIES";
  private static final String FOLDER = "minikeeper-stories";
  // Limits of the server.
  private static final int TITLE_CHARS_MAX = 200;
  static final int FAILURE_CHARS_MAX = 4_000;
  /** Longer than any title, which the name of a file is made of. */
  private static final int FILE_NAME_CHARS_MAX = TITLE_CHARS_MAX + 10;

  private Stories() {}

  /**
   * Prints the story of a universe, and saves it in this folder, if one is given. Throws nothing: it must not hide why the
   * test failed.
   */
  static void tell(String title, Optional<String> given, Universe universe, Throwable failure) {
    tell(given, universe, () -> story(title, universe, failure));
  }

  /** Prints and saves a story in the same way. */
  static void tell(Optional<String> given, Object universe, Supplier<Story> story) {
    String text;
    try {
      Story told = story.get();
      text = told.text() + saved(given, told);
    } catch (RuntimeException error) {
      text = "no story of " + universe + ": " + error.getMessage() + "\n";
    }
    // In one call, so that the stories of tests that run in parallel do not mix.
    System.err.print("\n" + text);
  }

  /** Saves the story of a universe without printing it. Returns its page; none if stories are off or it cannot be told. */
  static Optional<Path> save(String title, Optional<String> given, Universe universe, Throwable failure) {
    try {
      Story story = story(title, universe, failure);
      return bundle(given, story);
    } catch (IOException | RuntimeException error) {
      System.err.println("no story of " + title + ": " + error);
      return Optional.empty();
    }
  }

  private static Story story(String title, Universe universe, Throwable failure) {
    return universe.story(
        Map.of("title", cut(title, TITLE_CHARS_MAX), "failure", cut(failure.toString(), FAILURE_CHARS_MAX)));
  }

  /** Saves a story. Returns a line that says where. */
  private static String saved(Optional<String> given, Story story) {
    try {
      return bundle(given, story).map(page -> "\nsaved in " + page + "\n").orElse("");
    } catch (IOException error) {
      return "\nnot saved: " + error + "\n";
    }
  }

  private static Optional<Path> bundle(Optional<String> given, Story story) throws IOException {
    Optional<Path> page = page(given, story.fileName(), story.html());
    if (page.isPresent()) Files.writeString(page.get().resolveSibling(story.fileName() + ".json"), story.json());
    return page;
  }

  /** Saves a page in the folder for stories, and returns it; none if none are saved. */
  static Optional<Path> page(Optional<String> given, String name, String html) throws IOException {
    Optional<Path> folder = folder(given);
    if (folder.isEmpty()) return Optional.empty();
    // A server says it, which may be hostile.
    if (!isFileName(name)) {
      throw new IOException("the server calls the file \"" + cut(name, FILE_NAME_CHARS_MAX).replaceAll("\\p{Cntrl}", "?")
          + "\": a name has 1 to " + FILE_NAME_CHARS_MAX + " letters, digits, ., _ and -, and does not begin with a dot");
    }
    if (!Files.exists(folder.get())) {
      Files.createDirectories(folder.get());
      Files.writeString(folder.get().resolve(".gitignore"), "*\n");
    }
    return Optional.of(Files.writeString(folder.get().resolve(name + ".html"), html));
  }

  /** Returns a title as the name of a file. */
  static String fileName(String title) {
    return cut(title.replaceAll("[^A-Za-z0-9._-]", "-"), TITLE_CHARS_MAX);
  }

  /** Whether this is the name of a file in a folder, and nothing else. */
  private static boolean isFileName(String name) {
    if (name.isEmpty() || name.length() > FILE_NAME_CHARS_MAX || name.charAt(0) == '.') return false;
    return name.chars().allMatch(c -> c < 128 && (Character.isLetterOrDigit(c) || "._-".indexOf(c) >= 0));
  }

  /** The folder for stories; none if none are saved. */
  private static Optional<Path> folder(Optional<String> setting) {
    Optional<String> given = setting.or(() -> Optional.ofNullable(System.getenv(VARIABLE)));
    if (given.isPresent()) {
      return given.filter(name -> !name.isEmpty() && !name.equals("off")).map(name -> Path.of(name).toAbsolutePath());
    }
    Path base = Path.of("").toAbsolutePath();
    for (String built : new String[] {"target", "build"}) {
      if (Files.isDirectory(base.resolve(built))) return Optional.of(base.resolve(built).resolve(FOLDER));
    }
    return Optional.of(base.resolve(FOLDER));
  }

  static String cut(String text, int charsMax) {
    return text.length() <= charsMax ? text : text.substring(0, charsMax);
  }
}
