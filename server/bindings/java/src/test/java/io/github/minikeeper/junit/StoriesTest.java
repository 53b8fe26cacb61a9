package io.github.minikeeper.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.HostileServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where stories are saved. */
public class StoriesTest {
  @TempDir
  Path folder;

  /** A hostile server used to choose the path of the file. */
  @Test
  void storyIsSavedInItsFolderWhateverTheServerCallsIt() throws Exception {
    Optional<String> stories = Optional.of(folder.resolve("stories").toString());
    for (String name : List.of("../package", "..", ".", "", ".hidden", "a/b", "/etc/x", "a\\b", "C:x", "a\0b", "a\nb", "ä",
        "x".repeat(300), folder.resolve("absolute").toString())) {
      Map<String, Object> story = Map.of("file_name", name, "html", "planted", "json", "planted", "text", "text\n");
      try (HostileServer server = HostileServer.answering(story)) {
        assertEquals(Optional.empty(), Stories.save("title", stories, server.universe(), new AssertionError("x")), name);
      }
      assertEquals(List.of(), files(), name);
    }
    Map<String, Object> story = Map.of("file_name", "suite.Test-1_a", "html", "fine", "json", "{}", "text", "text\n");
    try (HostileServer server = HostileServer.answering(story)) {
      Path page = Stories.save("title", stories, server.universe(), new AssertionError("x")).orElseThrow();
      assertEquals(folder.resolve("stories/suite.Test-1_a.html"), page);
    }
    assertTrue(files().contains(folder.resolve("stories/suite.Test-1_a.json")));
  }

  /** The class of a test may be nested, and its method have any name in other languages than Java. */
  @Test
  void titleOfASweepIsAlwaysAFileName() throws Exception {
    Optional<String> stories = Optional.of(folder.toString());
    for (String title : List.of("Outer$Inner.test", "a.B.counts visits once", "x/../../y", "x".repeat(500))) {
      Path page = Stories.page(stories, Stories.fileName(title) + ".sweep", "").orElseThrow();
      assertEquals(folder, page.getParent());
    }
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).filter(file -> !file.endsWith(".gitignore")).collect(Collectors.toList());
    }
  }
}
