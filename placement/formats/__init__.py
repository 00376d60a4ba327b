"""What other systems write, in this server's words: flavors, pods, Koordinator's classes, Volcano's files, pastes."""
