package io.github.minikeeper.junit;

import io.github.minikeeper.Story;
import io.github.minikeeper.Universe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/** Prints and saves the stories of failed tests. Uses neither JUnit 4 nor 5, so that either may be missing. */
final class Stories {
  /** The system property, and the configuration parameter of JUnit 5. */
  static final String PARAMETER = "minikeeper.stories";
  private static final String VARIABLE = "MINIKEEPER_STORIES";
  private static final String FOLDER = "minikeeper-stories";
  // Limits of the server.
  private static final int TITLE_CHARS_MAX = 200;
  private static final int FAILURE_CHARS_MAX = 4_000;

  private Stories() {}

  /**
   * Prints the story of a universe, and saves it in this folder, if one is given. Throws nothing: it must not hide why the
   * test failed.
   */
  static void tell(String title, Optional<String> given, Universe universe, Throwable failure) {
    String text;
    try {
      Map<String, String> fields = Map.of(
          "title", cut(title, TITLE_CHARS_MAX), "failure", cut(failure.toString(), FAILURE_CHARS_MAX));
      Story story = universe.story(fields);
      text = story.text() + saved(given, story);
    } catch (RuntimeException error) {
      text = "no story of " + universe + ": " + error.getMessage() + "\n";
    }
    // In one call, so that the stories of tests that run in parallel do not mix.
    System.err.print("\n" + text);
  }

  /** Saves a story. Returns a line that says where. */
  private static String saved(Optional<String> given, Story story) {
    Optional<Path> folder = folder(given);
    if (folder.isEmpty()) return "";
    try {
      if (!Files.exists(folder.get())) {
        Files.createDirectories(folder.get());
        Files.writeString(folder.get().resolve(".gitignore"), "*\n");
      }
      Path page = folder.get().resolve(story.fileName() + ".html");
      Files.writeString(page, story.html());
      Files.writeString(folder.get().resolve(story.fileName() + ".json"), story.json());
      return "\nsaved in " + page + "\n";
    } catch (IOException error) {
      return "\nnot saved: " + error + "\n";
    }
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

  private static String cut(String text, int charsMax) {
    return text.length() <= charsMax ? text : text.substring(0, charsMax);
  }
}
