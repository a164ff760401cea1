package tests;

import java.io.IOException;
import java.util.function.Consumer;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class WatchedFileSystem extends LocalFileSystem {
    public static volatile Consumer listener = null;

    private static synchronized void point(String operation, Path path) {
        if (listener != null) {
            listener.accept(operation + " " + path.toUri().getPath());
        }
    }

    public FSDataOutputStream create(
        Path path, FsPermission permission, boolean overwrite, int bufferSize,
        short replication, long blockSize, Progressable progress
    ) throws IOException {
        point("create", path);
        FSDataOutputStream out = super.create(
            path, permission, overwrite, bufferSize, replication, blockSize, progress);
        point("write", path);
        return out;
    }

    public FSDataOutputStream createNonRecursive(
        Path path, FsPermission permission, boolean overwrite, int bufferSize,
        short replication, long blockSize, Progressable progress
    ) throws IOException {
        point("create", path);
        FSDataOutputStream out = super.createNonRecursive(
            path, permission, overwrite, bufferSize, replication, blockSize, progress);
        point("write", path);
        return out;
    }

    public boolean mkdirs(Path path) throws IOException {
        point("mkdirs", path);
        return super.mkdirs(path);
    }

    public boolean rename(Path path, Path target) throws IOException {
        point("rename", path);
        return super.rename(path, target);
    }

    public boolean delete(Path path, boolean recursive) throws IOException {
        point("delete", path);
        return super.delete(path, recursive);
    }
}
